-- reclaim: take over claims made from the same coordinates: a redelivery, no duplicate; returns them, and whether a wait has them
UPDATE step SET owner = %s
FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::text[], %s::int[], %s::bigint[])
  AS given (event_id, run, name, topic, partition, "offset")
WHERE step.event_id = given.event_id AND step.agent = %s AND step.name = given.name AND step.run = given.run
  AND (step.topic, step.partition, step."offset") = (given.topic, given.partition, given."offset")
RETURNING step.topic, step.partition, step."offset", step.suspended
