-- health_workers: workers as they last showed themselves; age in seconds by one clock, the database's
SELECT agent, slot, host, pid, started_at, extract(epoch FROM now() - beat_at)::float8 AS age, vitals
FROM worker
ORDER BY agent, slot
