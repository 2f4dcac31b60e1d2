-- jobs: the jobs that fit every filter given, those that moved last first; without `data`, which would be gathered for each
SELECT trace_id, tenant, stage, status, NULL AS data, attempts, run, hop, events, dead_letters, conflicts, parked,
       created_at, updated_at,
       calls, tokens, cost_micro_dollars
FROM job_state
WHERE (%(stage)s::text IS NULL OR stage = %(stage)s)
  AND (%(status)s::text IS NULL OR status = %(status)s)
  AND (%(older_than)s::timestamptz IS NULL OR updated_at < %(older_than)s)
  AND (%(newer_than)s::timestamptz IS NULL OR updated_at >= %(newer_than)s)
ORDER BY updated_at DESC, trace_id
LIMIT %(limit)s
