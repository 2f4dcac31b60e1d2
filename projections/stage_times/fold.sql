-- stage_times: counts add up and times widen, so neither the order of the events nor how they are batched matters.
INSERT INTO stage_times AS old
SELECT stage, (occurred_at AT TIME ZONE 'UTC')::date AS day, count(*), sum(attempt), min(occurred_at), max(occurred_at)
FROM new_events WHERE stage IS NOT NULL
GROUP BY stage, day ORDER BY stage, day    -- every projector takes its rows in this order, or two could wait in a circle
ON CONFLICT (stage, day) DO UPDATE SET events = old.events + excluded.events, attempts = old.attempts + excluded.attempts,
  first_at = least(old.first_at, excluded.first_at), last_at = greatest(old.last_at, excluded.last_at);

-- An event and its cause are a pair, counted once: with the event if event_log has the cause (it has this batch already),
-- else with the cause, which finds the event among the early ones. Nothing comes in between: batches with events of one job
-- are folded one after the other. To look for effects in event_log instead would count pairs twice where a refold goes
-- through the log piece by piece: there both are in it from the beginning.
WITH effect AS (                           -- by key in a subquery: a page or two, however large the log
  SELECT causation_id AS cause_id, event_id, trace_id, stage, emitted_by, run, occurred_at,
         (SELECT occurred_at FROM event_log WHERE event_id = new.causation_id AND trace_id = new.trace_id) AS began
  FROM new_events AS new WHERE stage IS NOT NULL AND causation_id IS NOT NULL
), early AS (
  INSERT INTO stage_times_early SELECT cause_id, event_id, trace_id, stage, emitted_by, run, occurred_at
  FROM effect WHERE began IS NULL ORDER BY cause_id, event_id
), caught AS (
  DELETE FROM stage_times_early AS early USING new_events AS cause
  WHERE cause.event_id = cause_id AND cause.trace_id = early.trace_id RETURNING early.*, cause.occurred_at AS began
), timed AS MATERIALIZED (                 -- clocks differ: no event is before its cause, and the claim is between the two
  SELECT stage, (occurred_at AT TIME ZONE 'UTC')::date AS day, began, greatest(occurred_at, began) AS ended,
         -- The claim is no event, but it is committed before what comes of it is emitted, it never moves, and a redrive
         -- makes its own: a refold finds what the fold found. One that was deleted since leaves only the whole time.
         (SELECT least(greatest(created_at, began), greatest(occurred_at, began)) FROM step
          WHERE event_id = cause_id AND agent = split_part(emitted_by, ' ', 1) AND name = '' AND run = pair.run) AS claimed
  FROM (SELECT * FROM effect WHERE began IS NOT NULL UNION ALL SELECT * FROM caught) AS pair
)
INSERT INTO stage_times_counts AS old
SELECT stage, day, (get_byte(bits, 0) << 8 | get_byte(bits, 1)) >> 1 AS bucket,  -- exponent, 3 binary digits
       sum(whole), sum(waiting), sum(working), coalesce(max(took) FILTER (WHERE whole = 1), '0')
FROM timed, LATERAL (VALUES (ended - began, 1, 0, 0), (claimed - began, 0, 1, 0), (ended - claimed, 0, 0, 1))
  AS part (took, whole, waiting, working), LATERAL (SELECT float8send(date_part('epoch', took))) AS packed (bits)
WHERE took IS NOT NULL GROUP BY stage, day, bucket ORDER BY stage, day, bucket
ON CONFLICT (stage, day, bucket) DO UPDATE SET longest = greatest(old.longest, excluded.longest),
  whole = old.whole + excluded.whole, waiting = old.waiting + excluded.waiting, working = old.working + excluded.working;
