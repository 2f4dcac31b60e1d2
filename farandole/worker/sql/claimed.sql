-- claimed: of events that were claimed before, the coordinates that hold the claim: a redelivery, no duplicate
SELECT given.topic, given.partition, given."offset"
FROM step
JOIN unnest(%s::uuid[], %s::int[], %s::text[], %s::int[], %s::bigint[]) AS given (event_id, run, topic, partition, "offset")
  ON step.event_id = given.event_id AND step.run = given.run
WHERE step.agent = %s AND step.name = ''
  AND (step.topic, step.partition, step."offset") = (given.topic, given.partition, given."offset")
