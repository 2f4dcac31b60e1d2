-- parked_hold: those of these records that are still parked, locked in order; two retries at once wait for each other
SELECT topic, partition, "offset", timestamp_ms
FROM parked
WHERE (topic, partition, "offset", timestamp_ms) IN (
  SELECT * FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(offsets)s::bigint[], %(timestamps)s::bigint[])
)
  AND (%(discarded)s OR discarded_at IS NULL)
ORDER BY topic, partition, "offset", timestamp_ms
FOR UPDATE
