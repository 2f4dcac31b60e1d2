-- health_dead_letters: dead letters that nobody has redriven or discarded, as far as they are projected, by agent and cause
SELECT coalesce(dead.body ->> 'agent', '?') AS agent, coalesce(dead.body ->> 'cause', '?') AS cause, count(*)
FROM event_log AS dead
WHERE dead.outcome = 'blocked' AND dead.type = %(flow)s || '.JobDeadLettered'
  AND NOT EXISTS (
    SELECT FROM event_log AS answer
    WHERE answer.trace_id = dead.trace_id
      AND answer.type IN (%(flow)s || '.JobRedriven', %(flow)s || '.JobDiscarded')
      AND answer.body ->> 'dead_event_id' = dead.event_id::text
  )
GROUP BY 1, 2
ORDER BY 1, 2
