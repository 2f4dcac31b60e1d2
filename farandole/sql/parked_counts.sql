-- parked_counts: how many records of a choice are parked, by topic and cause
SELECT topic, cause, count(*) AS records, count(discarded_at) AS discarded, min(parked_at) AS oldest, max(parked_at) AS newest
FROM parked
WHERE (%(topic)s::text IS NULL OR topic = %(topic)s)
  AND (%(partition)s::int IS NULL OR partition = %(partition)s)
  AND (%(offset)s::bigint IS NULL OR "offset" = %(offset)s)
  AND (%(cause)s::text IS NULL OR cause = %(cause)s)
  AND (%(trace_id)s::uuid IS NULL OR trace_id = %(trace_id)s)
  AND (%(discarded)s OR discarded_at IS NULL)
GROUP BY topic, cause
ORDER BY topic, cause
