-- throughput: each new event adds one to its minute, once. Jobs are counted by what happens once to them, not by looking
-- at how they stand: that would depend on what has come so far.
INSERT INTO throughput AS old (minute, events, begun, done, failed, blocked)
SELECT date_trunc('minute', occurred_at, 'UTC') AS minute, count(*), count(*) FILTER (WHERE causation_id IS NULL),
       count(*) FILTER (WHERE outcome = 'done'), count(*) FILTER (WHERE outcome = 'failed'),
       count(*) FILTER (WHERE outcome = 'blocked')
FROM new_events
GROUP BY minute
ORDER BY minute                            -- every projector takes its rows in this order, or two could wait in a circle
ON CONFLICT (minute) DO UPDATE SET
  events  = old.events + excluded.events,
  begun   = old.begun + excluded.begun,
  done    = old.done + excluded.done,
  failed  = old.failed + excluded.failed,
  blocked = old.blocked + excluded.blocked;
