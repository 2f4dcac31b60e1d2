-- listed: effects that fit every filter given, those that wait for a person first, then the latest
SELECT event_id, trace_id, agent, name, state, coalesce(generation, 0) AS generation, coalesce(begun, 0) AS begun,
       owner, extract(epoch FROM lease_until - now())::float AS lease_seconds, coalesce(hold, false) AS hold,
       result, trail, error, failure, failed_run, call_id, model, reserved, budgets, tenant,
       created_at, finished_at, now() AS looked_at
FROM step
WHERE state IS NOT NULL
  AND (%(trace_id)s::uuid IS NULL OR trace_id = %(trace_id)s)
  AND (%(event_id)s::uuid IS NULL OR event_id = %(event_id)s)
  AND (%(agent)s::text IS NULL OR agent = %(agent)s)
  AND (%(name)s::text IS NULL OR name = %(name)s)
  AND (%(state)s::text IS NULL OR state = %(state)s)
ORDER BY state <> 'held', created_at DESC, event_id, agent, name
LIMIT %(limit)s
