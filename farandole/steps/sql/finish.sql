-- finish: how steps ended, or how one of their calls did; only for whoever still has the lease. Money is booked all the same
WITH given AS (
  SELECT *
  FROM unnest(%(n)s::int[], %(event_id)s::uuid[], %(agent)s::text[], %(name)s::text[], %(trace_id)s::uuid[], %(tenant)s::text[],
              %(owner)s::text[], %(state)s::text[], %(result)s::text[], %(error)s::text[], %(failure)s::text[],
              %(failed_run)s::int[], %(trail)s::text[],
              %(call_id)s::uuid[], %(model)s::text[], %(input_tokens)s::bigint[], %(output_tokens)s::bigint[],
              %(cache_read_tokens)s::bigint[], %(cache_write_tokens)s::bigint[], %(micro_dollars)s::bigint[],
              %(latency_ms)s::bigint[], %(stop_reason)s::text[], %(outcome)s::text[], %(request_id)s::text[])
    AS given (n, event_id, agent, name, trace_id, tenant, owner, state, result, error, failure, failed_run, trail,
              call_id, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, micro_dollars,
              latency_ms, stop_reason, outcome, request_id)
), found AS MATERIALIZED (
  SELECT given.n, step.state, step.call_id, step.reserved, step.budgets,
         -- its owner seemed to be gone, and speaks: of a held one it must say that it has happened
         step.state = 'leased' OR (step.state = 'held' AND given.state = 'done')
           OR (step.state = 'failed' AND step.finished_at IS NULL AND given.state <> 'leased') AS open
  FROM step JOIN given USING (event_id, agent, name)
  WHERE step.run = 0 AND step.owner = given.owner
  ORDER BY step.event_id, step.agent, step.name
  FOR UPDATE OF step
), booked AS MATERIALIZED (                -- a take-over has booked the call already, at its upper bound
  SELECT given.n, usage.micro_dollars, usage.budgets
  FROM usage JOIN given USING (call_id)
  WHERE usage.outcome = 'unknown'
  ORDER BY usage.call_id
  FOR UPDATE OF usage
), ended AS (
  UPDATE step SET
    state = given.state, result = given.result, error = given.error, failure = given.failure, failed_run = given.failed_run,
    trail = given.trail, call_id = NULL, model = NULL, reserved = NULL, budgets = NULL,
    finished_at = CASE WHEN given.state <> 'leased' THEN clock_timestamp() END
  FROM given JOIN found USING (n)
  WHERE found.open
    AND step.event_id = given.event_id AND step.agent = given.agent AND step.name = given.name AND step.run = 0
), corrected AS (
  UPDATE usage SET
    input_tokens = given.input_tokens, output_tokens = given.output_tokens, cache_read_tokens = given.cache_read_tokens,
    cache_write_tokens = given.cache_write_tokens, micro_dollars = given.micro_dollars, latency_ms = given.latency_ms,
    stop_reason = given.stop_reason, outcome = given.outcome, request_id = given.request_id
  FROM given JOIN booked USING (n)
  WHERE usage.call_id = given.call_id
  RETURNING usage.call_id
), written AS (
  INSERT INTO usage (call_id, trace_id, event_id, agent, step, tenant, model, input_tokens, output_tokens, cache_read_tokens,
                     cache_write_tokens, micro_dollars, latency_ms, stop_reason, outcome, request_id, budgets)
  SELECT given.call_id, trace_id, event_id, agent, name, tenant, given.model, input_tokens, output_tokens, cache_read_tokens,
         cache_write_tokens, micro_dollars, latency_ms, stop_reason, outcome, request_id, found.budgets
  FROM given LEFT JOIN found USING (n)
  WHERE given.call_id IS NOT NULL
  ON CONFLICT DO NOTHING
  RETURNING call_id
), change AS (
  SELECT key, sum(reserved)::bigint AS reserved, sum(spent)::bigint AS spent
  FROM (SELECT unnest(found.budgets) AS key, -found.reserved AS reserved,
               CASE WHEN given.call_id IS NULL THEN 0      -- it was not made
                    ELSE coalesce(given.micro_dollars, found.reserved) END AS spent
        FROM found JOIN given USING (n)
        WHERE found.state = 'leased' AND found.reserved IS NOT NULL
        UNION ALL
        SELECT unnest(booked.budgets), 0, given.micro_dollars - booked.micro_dollars
        FROM booked JOIN given USING (n)
        WHERE booked.micro_dollars IS NOT NULL AND given.micro_dollars IS NOT NULL) AS each
  GROUP BY key
), touched AS MATERIALIZED (
  SELECT budget.key FROM budget WHERE key IN (SELECT key FROM change) ORDER BY key FOR UPDATE
), reckoned AS (
  UPDATE budget SET reserved = budget.reserved + change.reserved, spent = budget.spent + change.spent, updated_at = now()
  FROM change JOIN touched USING (key)
  WHERE budget.key = change.key
)
SELECT given.n,
       found.open OR found.state = given.state AS mine,
       given.call_id IS NULL OR given.call_id IN (SELECT call_id FROM written UNION ALL SELECT call_id FROM corrected) AS told
FROM given LEFT JOIN found USING (n)
