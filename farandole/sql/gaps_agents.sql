-- gaps_agents: what is known of the offsets of agents, in their order; `agent` null: of all
SELECT agent, topic, partition, topic_id, position, gap, go_on_at, updated_at
FROM agent_offset
WHERE %(agent)s::text IS NULL OR agent = %(agent)s
ORDER BY agent, topic, partition
