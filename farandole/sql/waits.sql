-- waits: what one job waits for, the next to be due first
SELECT agent, event_id, run, kind, due, attempts, error, created_at, woken_at
FROM wait
WHERE trace_id = %(trace_id)s
ORDER BY due NULLS LAST, "offset"
