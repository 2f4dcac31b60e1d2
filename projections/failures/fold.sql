-- failures: counts add up, times widen, and the last one is the greatest by (time, id), in whatever order they come.
WITH failure AS (
  SELECT outcome, occurred_at, event_id, trace_id,
         left(coalesce(body->>'agent', split_part(emitted_by, ' ', 1)), 200) AS agent,   -- a key's room is limited
         left(CASE WHEN type LIKE '%.JobDiscarded' THEN 'discarded'                      -- a person's own words are no key
                   ELSE coalesce(body->>'cause', body->>'reason', type) END, 200) AS cause,
         left(coalesce(body->>'error', body->>'detail', body->>'reason'), 500) AS error
  FROM new_events
  WHERE outcome IN ('blocked', 'failed')
)
INSERT INTO failures AS old
SELECT agent, outcome, cause, count(*), min(occurred_at), max(occurred_at),
       (array_agg(event_id ORDER BY occurred_at DESC, event_id DESC))[1],
       (array_agg(trace_id ORDER BY occurred_at DESC, event_id DESC))[1],
       (array_agg(error    ORDER BY occurred_at DESC, event_id DESC))[1]
FROM failure
GROUP BY agent, outcome, cause
ORDER BY agent, outcome, cause             -- every projector takes its rows in this order, or two could wait in a circle
ON CONFLICT (agent, outcome, cause) DO UPDATE SET
  times      = old.times + excluded.times,
  first_seen = least(old.first_seen, excluded.first_seen),
  (last_seen, last_event, last_job, last_error) = (
    SELECT at, event, job, error
    FROM (VALUES (old.last_seen, old.last_event, old.last_job, old.last_error),
                 (excluded.last_seen, excluded.last_event, excluded.last_job, excluded.last_error))
      AS both_last (at, event, job, error)
    ORDER BY at DESC, event DESC LIMIT 1);
