-- begin_lifelines: the owner has records of these partitions in hand, so its death would count
UPDATE lifeline SET busy = true
FROM unnest(%(topics)s::text[], %(partitions)s::int[]) AS given (topic, partition)
WHERE lifeline.agent = %(agent)s AND lifeline.owner = %(owner)s
  AND (lifeline.topic, lifeline.partition) = (given.topic, given.partition)
