-- due: waits whose time has come, those that no other sweeper has in hand; bounded in number and in bytes
WITH due AS MATERIALIZED (
  SELECT event_id, run, due, partition, "offset", octet_length(value) AS bytes
  FROM wait
  WHERE agent = %(agent)s AND woken_at IS NULL AND due <= now()
  ORDER BY due
  LIMIT %(rows)s
  FOR NO KEY UPDATE SKIP LOCKED
), counted AS (
  SELECT *, sum(bytes) OVER (ORDER BY due, partition, "offset", run) - bytes AS before FROM due
)
SELECT wait.event_id, wait.run, wait.seq, wait.topic, wait.partition, wait."offset", wait.timestamp_ms, wait.key, wait.value,
       wait.headers, wait.attempts, wait.error
FROM counted
JOIN wait ON wait.agent = %(agent)s AND wait.event_id = counted.event_id AND wait.run = counted.run
WHERE counted.before < %(bytes)s
ORDER BY counted.due, wait.partition, wait."offset", wait.run
