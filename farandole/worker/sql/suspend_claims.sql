-- suspend_claims: the claims whose handlings are put off, of this owner alone; a claim that was lost is made again
INSERT INTO step (agent, event_id, run, name, topic, partition, "offset", owner, suspended)
SELECT %(agent)s, given.event_id, given.run, given.name, given.topic, given.partition, given."offset", %(owner)s, true
FROM unnest(%(event_ids)s::uuid[], %(runs)s::int[], %(names)s::text[], %(topics)s::text[], %(partitions)s::int[],
            %(offsets)s::bigint[]) AS given (event_id, run, name, topic, partition, "offset")
ORDER BY given.event_id, given.run, given.name  -- as claims are taken: no deadlock
ON CONFLICT (event_id, agent, name, run) DO UPDATE SET suspended = true
WHERE step.owner = excluded.owner OR NOT %(claims)s  -- without claims nobody takes one over
RETURNING event_id, run, name
