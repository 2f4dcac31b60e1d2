-- limits: by partition, the offset before which a record may be of a forgotten job; null: anywhere, the topic is another one
SELECT mark.topic, mark.partition,
       CASE WHEN bool_or(mark.topic_id <> coalesce(held.topic_id, mark.topic_id)) THEN NULL ELSE max(mark.next_offset) END,
       (SELECT horizon FROM retention)
FROM forgotten_offset AS mark JOIN projector_offset AS held USING (topic, partition)
GROUP BY mark.topic, mark.partition
