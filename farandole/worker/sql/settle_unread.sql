-- settle_unread: the same for records that this version of the agent cannot or does not read: by where they lay
DELETE FROM wait
USING unnest(%s::text[], %s::int[], %s::bigint[], %s::int[], %s::int[]) AS given (topic, partition, "offset", run, seq)
WHERE wait.agent = %s AND wait.topic = given.topic AND wait.partition = given.partition
  AND wait."offset" = given."offset" AND wait.run = given.run AND wait.seq = given.seq
RETURNING wait.lane
