-- parked_discard: a person gives these records up; locked in the order in which a retry locks them
WITH chosen AS (
  SELECT topic, partition, "offset", timestamp_ms
  FROM parked
  WHERE (%(topic)s::text IS NULL OR topic = %(topic)s)
    AND (%(partition)s::int IS NULL OR partition = %(partition)s)
    AND (%(offset)s::bigint IS NULL OR "offset" = %(offset)s)
    AND (%(cause)s::text IS NULL OR cause = %(cause)s)
    AND (%(trace_id)s::uuid IS NULL OR trace_id = %(trace_id)s)
    AND discarded_at IS NULL
  ORDER BY topic, partition, "offset", timestamp_ms
  FOR UPDATE
)
UPDATE parked
SET discarded_at = now(), reason = %(reason)s
FROM chosen
WHERE parked.topic = chosen.topic AND parked.partition = chosen.partition AND parked."offset" = chosen."offset"
  AND parked.timestamp_ms = chosen.timestamp_ms
