-- stage_times: counts add up and times widen, so neither the order of the events nor how they are batched matters.
INSERT INTO stage_times AS old (stage, day, events, attempts, first_at, last_at)
SELECT stage, (occurred_at AT TIME ZONE 'UTC')::date AS day, count(*), sum(attempt), min(occurred_at), max(occurred_at)
FROM new_events WHERE stage IS NOT NULL GROUP BY stage, day
ORDER BY stage, day                        -- every projector takes its rows in this order, or two could wait in a circle
ON CONFLICT (stage, day) DO UPDATE SET
  events   = old.events + excluded.events,           attempts = old.attempts + excluded.attempts,
  first_at = least(old.first_at, excluded.first_at), last_at  = greatest(old.last_at, excluded.last_at);

-- An event and its cause are a pair, counted once: with the event if event_log has the cause (this batch is in it already),
-- else with the cause. Nothing comes in between, as batches with events of one job follow each other. The claim is no event,
-- but it is committed before anything comes of it, is never moved, and a redrive makes its own: a refold finds it again.
WITH effect AS (                           -- subqueries: by key, a handful of pages an event, however large the log is
  SELECT stage, emitted_by, run, occurred_at, trace_id, event_id, causation_id AS cause_id,
         (SELECT occurred_at FROM event_log WHERE event_id = new.causation_id AND trace_id = new.trace_id) AS began
  FROM new_events AS new WHERE stage IS NOT NULL AND causation_id IS NOT NULL
), early AS (
  INSERT INTO stage_times_early SELECT cause_id, event_id, trace_id, stage, emitted_by, run, occurred_at
  FROM effect WHERE began IS NULL ORDER BY cause_id, event_id
), caught AS (
  DELETE FROM stage_times_early AS early USING new_events AS cause
  WHERE early.cause_id = cause.event_id AND early.trace_id = cause.trace_id RETURNING early.*, cause.occurred_at AS began
), pair AS (
  SELECT stage, emitted_by, run, occurred_at, cause_id, began FROM effect WHERE began IS NOT NULL
  UNION ALL SELECT stage, emitted_by, run, occurred_at, cause_id, began FROM caught
), timed AS MATERIALIZED (                 -- clocks differ: no event is before its cause, and the claim is between the two
  SELECT stage, (occurred_at AT TIME ZONE 'UTC')::date AS day, began, greatest(occurred_at, began) AS ended, (
    SELECT least(greatest(created_at, began), greatest(occurred_at, began)) FROM step
    WHERE event_id = cause_id AND agent = split_part(emitted_by, ' ', 1) AND name = '' AND step.run = pair.run) AS claimed
  FROM pair
)
INSERT INTO stage_time_counts AS old
SELECT stage, day, (get_byte(bits, 0) << 8 | get_byte(bits, 1)) >> 1 AS bucket,  -- a double's exponent and first 3 binary digits
       sum(w), sum(q), sum(d), coalesce(max(t) FILTER (WHERE w = 1), '0')
FROM timed, LATERAL (VALUES (ended - began, 1, 0, 0), (claimed - began, 0, 1, 0), (ended - claimed, 0, 0, 1)) AS p (t, w, q, d),
     LATERAL (SELECT float8send(date_part('epoch', t))) AS b (bits)
WHERE t IS NOT NULL GROUP BY stage, day, bucket ORDER BY stage, day, bucket
ON CONFLICT (stage, day, bucket) DO UPDATE SET
  whole   = old.whole + excluded.whole,     waiting = old.waiting + excluded.waiting,
  working = old.working + excluded.working, longest = greatest(old.longest, excluded.longest);
