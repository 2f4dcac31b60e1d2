-- look_later: waits whose wake still lies before its reader: look again when it has taken twice as long, in an hour at most
UPDATE wait SET look_at = now() + least(interval '1 hour', greatest(interval '10 seconds', now() - wait.woken_at))
FROM unnest(%s::uuid[], %s::int[], %s::int[]) AS given (event_id, run, seq)
WHERE wait.agent = %s AND wait.event_id = given.event_id AND wait.run = given.run AND wait.seq = given.seq
  AND wait.woken_at IS NOT NULL
