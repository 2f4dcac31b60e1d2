-- put_off: waits whose wake the broker refused, for their own sake
UPDATE wait SET due = now() + interval '5 minutes'
FROM unnest(%s::uuid[], %s::int[], %s::int[]) AS given (event_id, run, seq)
WHERE wait.agent = %s AND wait.event_id = given.event_id AND wait.run = given.run AND wait.seq = given.seq
