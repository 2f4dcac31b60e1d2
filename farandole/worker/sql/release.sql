-- release: of keys whose wait has ended, the first event that stood behind it
UPDATE wait SET due = now(), look_at = NULL
FROM unnest(%(lanes)b::bytea[]) AS given (lane)
CROSS JOIN LATERAL (
  SELECT first.event_id, first.run, first.kind
  FROM wait AS first
  WHERE first.agent = %(agent)s AND first.lane = given.lane
  ORDER BY first.partition, first."offset", first.run
  LIMIT 1
) AS first
WHERE wait.agent = %(agent)s AND wait.event_id = first.event_id AND wait.run = first.run
  AND first.kind = 'behind' AND wait.due IS NULL
