-- know: keep where partitions stand as they are assigned; whatever was decided about them is carried out now
INSERT INTO agent_offset AS known (agent, topic, partition, topic_id, position)
SELECT %(agent)s, topic, partition, topic_id, position
FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(topic_ids)s::text[], %(positions)s::bigint[])
  AS given (topic, partition, topic_id, position)
ORDER BY topic, partition
ON CONFLICT (agent, topic, partition) DO UPDATE
SET topic_id = coalesce(excluded.topic_id, known.topic_id), position = coalesce(excluded.position, known.position),
    gap = NULL, go_on_at = NULL, updated_at = now()
