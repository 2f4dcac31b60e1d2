-- wait: handlings are put off; of one that is put off again, the row goes on with the next number
INSERT INTO wait (agent, event_id, run, seq, kind, trace_id, due, topic, partition, "offset", timestamp_ms, key, value,
                  headers, lane, attempts, error, look_at)
SELECT %s, given.event_id, given.run, given.seq, given.kind, given.trace_id, now() + make_interval(secs => given.after),
       given.topic, given.partition, given."offset", given.timestamp_ms, given.key, given.value, given.headers::json,
       given.lane, given.attempts, given.error, CASE WHEN given.after IS NULL THEN now() + interval '1 minute' END
FROM unnest(%s::uuid[], %s::int[], %s::int[], %s::text[], %s::uuid[], %s::float8[], %s::text[], %s::int[], %s::bigint[],
            %s::bigint[], %b::bytea[], %b::bytea[], %s::text[], %b::bytea[], %s::int[], %s::text[])
  AS given (event_id, run, seq, kind, trace_id, after, topic, partition, "offset", timestamp_ms, key, value, headers, lane,
            attempts, error)
ORDER BY given.event_id, given.run
ON CONFLICT (agent, event_id, run) DO UPDATE SET
  seq = excluded.seq, kind = excluded.kind, due = excluded.due, lane = excluded.lane, attempts = excluded.attempts,
  error = excluded.error, woken_at = NULL, wakes = 0, look_at = excluded.look_at
WHERE wait.seq < excluded.seq
