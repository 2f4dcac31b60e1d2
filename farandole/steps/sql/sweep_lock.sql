-- sweep_lock: steps whose leases ended long ago, and nobody came. What another sweeper, its owner or whoever takes it over has
-- in hand is passed over.
SELECT event_id, agent, name
FROM step
WHERE agent = %(agent)s AND run = 0 AND state = 'leased' AND lease_until < %(ended)s
ORDER BY event_id, agent, name
LIMIT %(rows)s
FOR UPDATE SKIP LOCKED
