-- parked_rows: the parked records of a choice, in the order of their places, behind the place `after`
SELECT topic, partition, "offset", timestamp_ms, key, value, headers, trace_id, cause, error, parked_at, retried_at,
       discarded_at, reason
FROM parked
WHERE (%(topic)s::text IS NULL OR topic = %(topic)s)
  AND (%(partition)s::int IS NULL OR partition = %(partition)s)
  AND (%(offset)s::bigint IS NULL OR "offset" = %(offset)s)
  AND (%(cause)s::text IS NULL OR cause = %(cause)s)
  AND (%(trace_id)s::uuid IS NULL OR trace_id = %(trace_id)s)
  AND (%(discarded)s OR discarded_at IS NULL)
  AND (%(until)s::timestamptz IS NULL OR parked_at <= %(until)s)
  AND (topic, partition, "offset", timestamp_ms)
      > (%(after_topic)s::text, %(after_partition)s::int, %(after_offset)s::bigint, %(after_timestamp_ms)s::bigint)
ORDER BY topic, partition, "offset", timestamp_ms
LIMIT %(limit)s
