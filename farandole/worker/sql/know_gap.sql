-- know_gap: why an agent stands still at a partition; what is only a consequence does not hide an earlier reason
INSERT INTO agent_offset AS known (agent, topic, partition, gap)
VALUES (%(agent)s, %(topic)s, %(partition)s, %(gap)s)
ON CONFLICT (agent, topic, partition) DO UPDATE
SET gap = CASE WHEN %(first)s THEN coalesce(known.gap, excluded.gap) ELSE excluded.gap END, updated_at = now()
