-- woken: wakes were sent and lie there
UPDATE wait SET woken_at = now(), wakes = wait.wakes + 1, wake_partition = given.partition, wake_offset = given."offset",
                look_at = now() + least(interval '1 hour', interval '10 seconds' * 2 ^ least(wait.wakes, 10))
FROM unnest(%s::uuid[], %s::int[], %s::int[], %s::int[], %s::bigint[]) AS given (event_id, run, seq, partition, "offset")
WHERE wait.agent = %s AND wait.event_id = given.event_id AND wait.run = given.run AND wait.seq = given.seq
