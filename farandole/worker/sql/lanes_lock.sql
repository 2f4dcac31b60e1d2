-- lanes_lock: as lanes_behind, and whoever ends the earlier wait must wait for this transaction: it then sees who is behind
SELECT given.place
FROM unnest(%s::int[], %b::bytea[], %s::int[], %s::bigint[]) AS given (place, lane, partition, "offset")
CROSS JOIN LATERAL (
  SELECT
  FROM wait
  WHERE wait.agent = %s AND wait.lane = given.lane
    AND (wait.partition, wait."offset") < (given.partition, given."offset")
  ORDER BY wait.partition DESC, wait."offset" DESC
  LIMIT 1
  FOR KEY SHARE
) AS earlier
