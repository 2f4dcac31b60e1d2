-- job: where one job stands, with what each stage said last
SELECT trace_id, tenant, stage, status, data, attempts, run, hop, events, dead_letters, conflicts, parked, created_at, updated_at,
       calls, tokens, cost_micro_dollars
FROM job_state
WHERE trace_id = %(trace_id)s
