-- wake_again: waits whose wake is gone; under the next number, as the old one may be claimed
UPDATE wait SET seq = wait.seq + 1, due = now(), woken_at = NULL, look_at = NULL
FROM unnest(%s::uuid[], %s::int[], %s::int[]) AS given (event_id, run, seq)
WHERE wait.agent = %s AND wait.event_id = given.event_id AND wait.run = given.run AND wait.seq = given.seq
  AND wait.woken_at IS NOT NULL
