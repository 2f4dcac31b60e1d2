-- write_offsets: where each partition goes on after this transaction
UPDATE projector_offset AS held
SET next_offset = reached.next_offset, updated_at = now()
FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(offsets)s::bigint[]) AS reached (topic, partition, next_offset)
WHERE held.topic = reached.topic AND held.partition = reached.partition
