-- begin: claim steps, a batch at once, and reserve what their model calls may cost; all of it, or nothing where it does not fit
WITH given AS (
  SELECT *
  FROM unnest(%(n)s::int[], %(event_id)s::uuid[], %(agent)s::text[], %(name)s::text[], %(trace_id)s::uuid[], %(tenant)s::text[],
              %(owner)s::text[], %(run)s::int[], %(hold)s::boolean[], %(call_id)s::uuid[], %(model)s::text[], %(ceiling)s::bigint[])
    AS given (n, event_id, agent, name, trace_id, tenant, owner, for_run, hold, call_id, model, ceiling)
), allowance AS (
  SELECT n, CASE WHEN daily THEN key || '/' || %(day)s::text ELSE key END AS key, most
  FROM unnest(%(allowance_n)s::int[], %(allowance_key)s::text[], %(allowance_most)s::bigint[], %(allowance_daily)s::boolean[])
    AS allowance (n, key, most, daily)
), found AS MATERIALIZED (                 -- locked: from here on it stays as it is; in one order, so that nobody waits in a circle
  SELECT given.n, given.owner AS wants, given.call_id AS next_call, given.for_run, given.hold AS holds, step.*
  FROM step JOIN given USING (event_id, agent, name)
  WHERE step.run = 0 AND step.state IS NOT NULL
  ORDER BY step.event_id, step.agent, step.name
  FOR UPDATE OF step
), judged AS MATERIALIZED (
  SELECT given.n, found.n IS NULL AS fresh,
         -- ours already: the answer to an earlier try was lost, or the next call of the same step
         found.state = 'leased' AND found.owner = given.owner AS ours,
         found.state = 'leased' AND found.owner <> given.owner AND found.lease_until < clock_timestamp() AS orphaned,
         found.state = 'forgotten' OR (found.state = 'failed' AND found.failed_run IS DISTINCT FROM given.for_run) AS again
  FROM given LEFT JOIN found USING (n)
), runs AS MATERIALIZED (                  -- those that may run, were there the money
  SELECT given.*, coalesce(ours AND found.call_id IS NOT DISTINCT FROM given.call_id, false) AS has_money
  FROM given JOIN judged USING (n) LEFT JOIN found USING (n)
  WHERE fresh OR ours OR again OR (orphaned AND NOT found.hold)
), need AS MATERIALIZED (
  SELECT key, min(most) AS most, sum(ceiling)::bigint AS needed
  FROM runs JOIN allowance USING (n)
  WHERE NOT has_money
  GROUP BY key
), lost AS MATERIALIZED (                  -- calls whose workers are gone: they cost what was reserved for them
  SELECT found.* FROM found JOIN judged USING (n) WHERE orphaned AND found.call_id IS NOT NULL
), freed AS MATERIALIZED (                 -- reserved for a call that was not made: a trail answered in its place
  SELECT found.* FROM found JOIN runs USING (n) WHERE found.owner = found.wants AND NOT has_money AND found.reserved IS NOT NULL
), touched AS MATERIALIZED (
  SELECT budget.key, spent + reserved AS taken
  FROM budget
  WHERE key IN (SELECT key FROM need UNION SELECT unnest(budgets) FROM lost UNION SELECT unnest(budgets) FROM freed)
  ORDER BY key
  FOR UPDATE
), room AS MATERIALIZED (
  SELECT key, taken - coalesce((SELECT sum(freed.reserved) FROM freed WHERE key = ANY (freed.budgets)), 0)::bigint AS taken
  FROM touched
), short AS MATERIALIZED (
  SELECT need.key, most, coalesce(taken, 0) AS taken, needed
  FROM need LEFT JOIN room USING (key)
  WHERE coalesce(taken, 0) + needed > most
  ORDER BY need.key
  LIMIT 1
), fits AS MATERIALIZED (
  SELECT NOT EXISTS (SELECT FROM short) AS ok
), row_of AS MATERIALIZED (
  SELECT runs.*, (SELECT array_agg(key ORDER BY key) FROM allowance WHERE allowance.n = runs.n) AS budgets
  FROM runs, fits
  WHERE ok
), inserted AS (
  INSERT INTO step (event_id, agent, name, run, state, owner, trace_id, tenant, generation, begun, lease_until, hold,
                    call_id, model, reserved, budgets)
  SELECT event_id, agent, name, 0, 'leased', owner, trace_id, tenant, 0, 1,
         clock_timestamp() + %(lease)s * interval '1 second', hold, call_id, model, ceiling, budgets
  FROM row_of JOIN judged USING (n)
  WHERE fresh
  ORDER BY event_id, agent, name
  ON CONFLICT DO NOTHING                   -- somebody else was quicker, just now
  RETURNING owner, 0 AS generation, NULL::text AS trail
), updated AS (
  UPDATE step SET
    state = 'leased', owner = row_of.owner, hold = row_of.hold, lease_until = clock_timestamp() + %(lease)s * interval '1 second',
    call_id = row_of.call_id, model = row_of.model, reserved = row_of.ceiling, budgets = row_of.budgets,
    begun = step.begun + CASE WHEN has_money THEN 0 ELSE 1 END,
    failure = NULL, failed_run = NULL, finished_at = NULL
  FROM row_of JOIN judged USING (n)
  WHERE NOT fresh AND step.event_id = row_of.event_id AND step.agent = row_of.agent AND step.name = row_of.name AND step.run = 0
  RETURNING row_of.owner, step.generation, step.trail
), held AS (
  UPDATE step SET state = 'held', error = 'the worker ended during the call: nobody knows whether it has happened',
                  call_id = NULL, reserved = NULL, budgets = NULL
  FROM found JOIN judged USING (n)
  WHERE orphaned AND found.hold
    AND step.event_id = found.event_id AND step.agent = found.agent AND step.name = found.name AND step.run = 0
), given_up AS (                          -- its worker is gone and there is no money for another call: nobody may come again
  UPDATE step SET state = 'failed', error = 'the worker ended during the call', owner = NULL,
                  call_id = NULL, model = NULL, reserved = NULL, budgets = NULL
  FROM found JOIN judged USING (n), fits
  WHERE NOT ok AND orphaned AND NOT found.hold
    AND step.event_id = found.event_id AND step.agent = found.agent AND step.name = found.name AND step.run = 0
), booked AS (
  INSERT INTO usage (call_id, trace_id, event_id, agent, step, tenant, model, micro_dollars, outcome, budgets)
  SELECT call_id, trace_id, event_id, agent, name, tenant, model, reserved, 'unknown', budgets FROM lost
  ON CONFLICT DO NOTHING
), granted AS (
  SELECT * FROM inserted UNION ALL SELECT * FROM updated
), change AS (
  SELECT key, sum(reserved)::bigint AS reserved, sum(spent)::bigint AS spent
  FROM (SELECT allowance.key, runs.ceiling AS reserved, 0 AS spent
        FROM granted JOIN runs USING (owner) JOIN allowance USING (n)
        WHERE NOT has_money AND runs.ceiling IS NOT NULL
        UNION ALL
        SELECT unnest(budgets), -reserved, 0 FROM freed, fits WHERE ok
        UNION ALL
        SELECT unnest(budgets), -reserved, reserved FROM lost WHERE reserved IS NOT NULL) AS each
  GROUP BY key
), reckoned AS (
  UPDATE budget SET reserved = budget.reserved + change.reserved, spent = budget.spent + change.spent, updated_at = now()
  FROM change
  WHERE budget.key = change.key
)
SELECT given.n, granted.owner IS NOT NULL AS granted, granted.generation, granted.trail,
       CASE WHEN orphaned AND found.hold THEN 'held' ELSE found.state END AS state,
       found.result, CASE WHEN orphaned AND found.hold THEN 'the worker ended during the call: nobody knows whether it has happened'
                          ELSE found.error END AS error, found.failure, greatest(extract(epoch FROM found.lease_until - clock_timestamp()), 0)::float AS seconds,
       short.key, short.most, short.taken, short.needed, runs.n IS NOT NULL AS runs,
       extract(epoch FROM date_trunc('day', now(), 'UTC') + interval '1 day' - now())::float AS day_ends_in
FROM given
JOIN judged USING (n)
LEFT JOIN found USING (n)
LEFT JOIN runs USING (n)
LEFT JOIN granted ON granted.owner = given.owner
LEFT JOIN short ON runs.n IS NOT NULL
