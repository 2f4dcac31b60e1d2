-- sweep: steps whose leases ended long ago, and nobody came: what came of their calls is unknown. A call of a model costs
-- what was reserved for it. What another sweeper, its owner or whoever takes it over has in hand is passed over.
WITH lost AS MATERIALIZED (
  SELECT *
  FROM step
  WHERE agent = %(agent)s AND run = 0 AND state = 'leased' AND lease_until < %(ended)s
  ORDER BY event_id, agent, name
  LIMIT %(rows)s
  FOR UPDATE SKIP LOCKED
), booked AS (
  INSERT INTO usage (call_id, trace_id, event_id, agent, step, tenant, model, micro_dollars, outcome, budgets)
  SELECT call_id, trace_id, event_id, agent, name, tenant, model, reserved, 'unknown', budgets
  FROM lost
  WHERE call_id IS NOT NULL
  ON CONFLICT DO NOTHING
), change AS (
  SELECT key, sum(reserved)::bigint AS reserved
  FROM (SELECT unnest(budgets) AS key, reserved FROM lost WHERE reserved IS NOT NULL) AS each
  GROUP BY key
), touched AS MATERIALIZED (
  SELECT budget.key FROM budget WHERE key IN (SELECT key FROM change) ORDER BY key FOR UPDATE
), reckoned AS (
  UPDATE budget SET reserved = budget.reserved - change.reserved, spent = budget.spent + change.reserved, updated_at = now()
  FROM change JOIN touched USING (key)
  WHERE budget.key = change.key
)
UPDATE step SET
  state = CASE WHEN lost.hold THEN 'held' ELSE 'failed' END,   -- its owner stays: it may live, and then its word counts
  error = 'the worker ended during the call: nobody knows whether it has happened',
  call_id = NULL, model = NULL, reserved = NULL, budgets = NULL
FROM lost
WHERE step.event_id = lost.event_id AND step.agent = lost.agent AND step.name = lost.name AND step.run = 0
RETURNING step.event_id, step.name, step.state
