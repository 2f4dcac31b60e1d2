-- job: where these jobs stand, with what each stage said last
SELECT trace_id, tenant, stage, status, data, attempts, run, hop, events, dead_letters, conflicts, parked, created_at, updated_at,
       calls, tokens, cost_micro_dollars
FROM job_state
WHERE trace_id = ANY(%(trace_ids)s::uuid[])
