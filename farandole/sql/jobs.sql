-- jobs: one page of the jobs that fit every filter given, those that moved last first, behind (after_at, after_id); without
-- `data`, which would be gathered for each. The rest is looked up for the page alone.
WITH page AS MATERIALIZED (
  SELECT trace_id
  FROM job_state
  WHERE (%(stage)s::text IS NULL OR stage = %(stage)s)
    AND (%(status)s::text IS NULL OR status = %(status)s)
    AND (%(older_than)s::timestamptz IS NULL OR updated_at < %(older_than)s)
    AND (%(newer_than)s::timestamptz IS NULL OR updated_at >= %(newer_than)s)
    AND (%(after_at)s::timestamptz IS NULL OR (updated_at, trace_id) < (%(after_at)s, %(after_id)s::uuid))
    AND (%(search)s::text IS NULL
         OR trace_id IN (SELECT trace_id FROM event_log
                         WHERE jsonb_to_tsvector('simple', body, '["string", "numeric"]')
                               @@ websearch_to_tsquery('simple', %(search)s)
                           AND octet_length(value) <= 100000))
  ORDER BY updated_at DESC, trace_id DESC
  LIMIT %(limit)s
)
SELECT trace_id, tenant, stage, status, NULL AS data, attempts, run, hop, events, dead_letters, conflicts, parked,
       created_at, updated_at, calls, tokens, cost_micro_dollars
FROM page JOIN job_state USING (trace_id)
ORDER BY updated_at DESC, trace_id DESC
