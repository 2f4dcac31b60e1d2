-- claim: take over partitions; waits for the old owner's open transaction, so it is a barrier
INSERT INTO projector_offset AS held (topic, partition, owner)
SELECT topic, partition, %(owner)s
FROM unnest(%(topics)s::text[], %(partitions)s::int[]) AS wanted (topic, partition)
ORDER BY topic, partition
ON CONFLICT (topic, partition) DO UPDATE SET owner = excluded.owner, epoch = held.epoch + 1, updated_at = now()
RETURNING topic, partition, epoch, next_offset, topic_id, gap
