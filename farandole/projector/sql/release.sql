-- release: give partitions back, where they were not taken over already
UPDATE projector_offset AS held
SET owner = NULL, updated_at = now()
FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(epochs)s::bigint[]) AS mine (topic, partition, epoch)
WHERE held.topic = mine.topic AND held.partition = mine.partition AND held.epoch = mine.epoch AND held.owner = %(owner)s
