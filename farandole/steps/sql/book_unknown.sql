-- book_unknown: model calls of effects that are taken from their workers, whose locks are held, cost what was reserved for them
WITH lost AS MATERIALIZED (
  SELECT step.*
  FROM step JOIN unnest(%s::uuid[], %s::text[], %s::text[]) AS given (event_id, agent, name) USING (event_id, agent, name)
  WHERE step.run = 0 AND step.call_id IS NOT NULL
), booked AS (
  INSERT INTO usage (call_id, trace_id, event_id, agent, step, tenant, model, micro_dollars, outcome, budgets)
  SELECT call_id, trace_id, event_id, agent, name, tenant, model, reserved, 'unknown', budgets FROM lost
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
UPDATE step SET call_id = NULL, model = NULL, reserved = NULL, budgets = NULL
FROM lost
WHERE step.event_id = lost.event_id AND step.agent = lost.agent AND step.name = lost.name AND step.run = 0
