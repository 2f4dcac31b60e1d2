-- lock_lifelines: what is known of partitions, held until the transaction ends
SELECT held.topic, held.partition, owner, position, deaths, until, suspect, alone, kills
FROM lifeline AS held
JOIN unnest(%(topics)s::text[], %(partitions)s::int[]) AS wanted (topic, partition) USING (topic, partition)
WHERE held.agent = %(agent)s
ORDER BY held.topic, held.partition
FOR UPDATE OF held
