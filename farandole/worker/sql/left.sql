-- left: woken a while ago and still there, with where the last wake lies and which record its claim is about
SELECT wait.event_id, wait.run, wait.seq, wait.wake_partition, wait.wake_offset, step.partition, step."offset"
FROM wait
LEFT JOIN step ON step.event_id = wait.event_id AND step.agent = wait.agent AND step.name = 'wake.' || wait.seq
              AND step.run = wait.run
WHERE wait.agent = %s AND wait.look_at <= now() AND wait.woken_at IS NOT NULL
ORDER BY wait.look_at
LIMIT %s
