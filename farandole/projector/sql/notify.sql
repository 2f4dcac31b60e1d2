-- notify: whoever waits for a job among the new events looks again; no words, and at most 64 notifications a transaction.
-- The same 64 names are made in lookout.py.
SELECT pg_notify(%(schema)s || '.' || bucket, '')
FROM (SELECT DISTINCT get_byte(uuid_send(trace_id), 15) & 63 AS bucket FROM new_events) AS moved
