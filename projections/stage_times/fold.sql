-- stage_times: counts add up and times widen, so neither the order of the events nor how they are batched matters.
INSERT INTO stage_times AS old (stage, day, events, attempts, first_at, last_at)
SELECT stage, (occurred_at AT TIME ZONE 'UTC')::date AS day, count(*), sum(attempt), min(occurred_at), max(occurred_at)
FROM new_events
WHERE stage IS NOT NULL
GROUP BY stage, day
ORDER BY stage, day                        -- every projector takes its rows in this order, or two could wait in a circle
ON CONFLICT (stage, day) DO UPDATE SET
  events   = old.events + excluded.events,
  attempts = old.attempts + excluded.attempts,
  first_at = least(old.first_at, excluded.first_at),
  last_at  = greatest(old.last_at, excluded.last_at);
