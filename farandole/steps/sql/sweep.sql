-- sweep: of these steps, whose locks are held, nobody knows whether their calls have happened
UPDATE step SET
  state = CASE WHEN step.hold THEN 'held' ELSE 'failed' END,   -- its owner stays: it may live, and then its word counts
  error = 'the worker ended during the call: nobody knows whether it has happened'
FROM unnest(%s::uuid[], %s::text[], %s::text[]) AS given (event_id, agent, name)
WHERE step.event_id = given.event_id AND step.agent = given.agent AND step.name = given.name AND step.run = 0
RETURNING step.event_id, step.name, step.state
