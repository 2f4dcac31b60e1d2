-- Run for every batch of events, in the transaction that writes them. `new_events` has their rows, each event once and never
-- again: columns as in event_log (event_id, trace_id, causation_id, type, stage, outcome, body, occurred_at, run, hop, …).
-- The result must not depend on the order of the events, nor on how they are batched: add up, widen (least, greatest), or keep
-- the greatest by a key that no two events share, such as (occurred_at, event_id). Use integers: sums of floats differ.
INSERT INTO example AS old (type, day, events, last_at)
SELECT type, (occurred_at AT TIME ZONE 'UTC')::date AS day, count(*), max(occurred_at)
FROM new_events
-- WHERE stage = 'done' AND body->>'decision' = 'reply'
GROUP BY type, day
ORDER BY type, day                         -- every projector takes its rows in this order, or two could wait in a circle
ON CONFLICT (type, day) DO UPDATE SET
  events  = old.events + excluded.events,
  last_at = greatest(old.last_at, excluded.last_at);
