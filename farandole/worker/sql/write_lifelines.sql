-- write_lifelines: what becomes of partitions under a new owner
INSERT INTO lifeline (agent, topic, partition, owner, position, deaths, until, suspect, kills)
SELECT %(agent)s, topic, partition, %(owner)s, position, deaths, until, suspect, kills
FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(positions)s::bigint[], %(deaths)s::int[], %(untils)s::bigint[],
            %(suspects)s::bigint[], %(kills)s::int[]) AS given (topic, partition, position, deaths, until, suspect, kills)
ORDER BY topic, partition
ON CONFLICT (agent, topic, partition) DO UPDATE SET
  owner = excluded.owner, position = excluded.position, deaths = excluded.deaths, until = excluded.until,
  suspect = excluded.suspect, alone = false, kills = excluded.kills
