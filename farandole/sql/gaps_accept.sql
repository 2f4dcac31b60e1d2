-- gaps_accept: a person has decided where an agent goes on; taken up when the partition is next assigned
INSERT INTO agent_offset (agent, topic, partition, go_on_at)
VALUES (%(agent)s, %(topic)s, %(partition)s, %(offset)s)
ON CONFLICT (agent, topic, partition) DO UPDATE SET gap = NULL, go_on_at = excluded.go_on_at, updated_at = now()
