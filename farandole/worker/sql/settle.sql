-- settle: handlings that are through with their wait; one that was put off again since then has another number and stays
DELETE FROM wait
USING unnest(%s::uuid[], %s::int[], %s::int[]) AS given (event_id, run, seq)
WHERE wait.agent = %s AND wait.event_id = given.event_id AND wait.run = given.run AND wait.seq = given.seq
RETURNING wait.lane
