-- parked_taken: these records are in event_log now, and parked no longer
DELETE FROM parked
WHERE (topic, partition, "offset", timestamp_ms) IN (
  SELECT * FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(offsets)s::bigint[], %(timestamps)s::bigint[])
)
