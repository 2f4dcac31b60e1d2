-- jobs_met: which of these jobs have an event whose payload meets the search; without an index, so for a bounded number
SELECT DISTINCT trace_id
FROM event_log
WHERE trace_id = ANY(%(trace_ids)s::uuid[])
  AND jsonb_to_tsvector('simple', body, '["string", "numeric"]') @@ websearch_to_tsquery('simple', %(search)s)
  AND octet_length(value) <= 100000
