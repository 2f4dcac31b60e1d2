-- know_gap: why an agent stands still at a partition
INSERT INTO agent_offset (agent, topic, partition, gap)
VALUES (%(agent)s, %(topic)s, %(partition)s, %(gap)s)
ON CONFLICT (agent, topic, partition) DO UPDATE SET gap = excluded.gap, updated_at = now()
