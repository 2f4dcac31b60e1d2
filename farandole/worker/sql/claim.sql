-- claim: claim events for an agent, a batch at once; returns the coordinates of the claims that are new
INSERT INTO step (agent, event_id, run, topic, partition, "offset")
SELECT %s, given.event_id, given.run, given.topic, given.partition, given."offset"
FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::int[], %s::bigint[]) AS given (event_id, run, topic, partition, "offset")
ORDER BY given.event_id  -- two workers take row locks in one order: no deadlock
ON CONFLICT DO NOTHING
RETURNING topic, partition, "offset"
