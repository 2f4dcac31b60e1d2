-- forget: effects that are to run anew, under another idempotency key; those that are forgotten already stay as they are
UPDATE step SET state = 'forgotten', generation = step.generation + 1, owner = NULL, lease_until = NULL,
                result = NULL, trail = NULL, failure = NULL, failed_run = NULL, finished_at = clock_timestamp()
FROM unnest(%s::uuid[], %s::text[], %s::text[]) AS given (event_id, agent, name)
WHERE step.event_id = given.event_id AND step.agent = given.agent AND step.name = given.name AND step.run = 0
  AND step.state <> 'forgotten'
