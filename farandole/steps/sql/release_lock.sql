-- release_lock: hold on to an effect that is still as a person saw it, and that nobody is at
SELECT 1
FROM step
WHERE event_id = %(event_id)s AND agent = %(agent)s AND name = %(name)s AND run = 0
  AND state = %(state)s AND generation = %(generation)s AND begun = %(begun)s AND owner IS NOT DISTINCT FROM %(owner)s
  AND (state = 'held' OR (state = 'failed' AND finished_at IS NULL) OR (state = 'leased' AND lease_until < clock_timestamp()))
FOR UPDATE
