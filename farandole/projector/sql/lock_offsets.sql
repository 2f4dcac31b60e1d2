-- lock_offsets: hold the partitions of a batch to the end of the transaction, in order, so that nobody waits in a circle
SELECT topic, partition, owner, epoch, next_offset, gap
FROM projector_offset
WHERE (topic, partition) IN (SELECT * FROM unnest(%(topics)s::text[], %(partitions)s::int[]))
ORDER BY topic, partition
FOR UPDATE
