-- release_lifelines: partitions are let go in good order; what is known of their records stays
UPDATE lifeline SET owner = NULL, alone = false
FROM unnest(%(topics)s::text[], %(partitions)s::int[]) AS given (topic, partition)
WHERE lifeline.agent = %(agent)s AND lifeline.owner = %(owner)s
  AND (lifeline.topic, lifeline.partition) = (given.topic, given.partition)
