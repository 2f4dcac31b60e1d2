-- lanes_behind: of records, those that an earlier one of their key is put off before
SELECT given.place
FROM unnest(%s::int[], %b::bytea[], %s::int[], %s::bigint[]) AS given (place, lane, partition, "offset")
WHERE EXISTS (
  SELECT FROM wait
  WHERE wait.agent = %s AND wait.lane = given.lane
    AND (wait.partition, wait."offset") < (given.partition, given."offset")
)
