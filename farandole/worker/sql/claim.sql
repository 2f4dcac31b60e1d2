-- claim: claim handlings for an agent, a batch at once; returns the coordinates of the claims that are new
INSERT INTO step (agent, owner, event_id, run, name, topic, partition, "offset")
SELECT %s, %s, given.event_id, given.run, given.name, given.topic, given.partition, given."offset"
FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::text[], %s::int[], %s::bigint[])
  AS given (event_id, run, name, topic, partition, "offset")
-- Two workers take row locks in one order: no deadlock. Of records with one event the first in the log has the claim: the
-- order of its key holds.
ORDER BY given.event_id, given.run, given.name, given.topic, given.partition, given."offset"
ON CONFLICT DO NOTHING
RETURNING topic, partition, "offset"
