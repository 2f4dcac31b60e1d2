-- known: what is known of an agent's partitions
SELECT topic, partition, topic_id, position, gap, go_on_at
FROM agent_offset
WHERE agent = %(agent)s AND (topic, partition) IN (SELECT * FROM unnest(%(topics)s::text[], %(partitions)s::int[]))
