-- parked_still: what keeps these records parked today
UPDATE parked
SET cause = tried.cause, error = tried.error, retried_at = now()
FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(offsets)s::bigint[], %(timestamps)s::bigint[], %(causes)s::text[],
            %(errors)s::text[]) AS tried (topic, partition, "offset", timestamp_ms, cause, error)
WHERE parked.topic = tried.topic AND parked.partition = tried.partition AND parked."offset" = tried."offset"
  AND parked.timestamp_ms = tried.timestamp_ms
