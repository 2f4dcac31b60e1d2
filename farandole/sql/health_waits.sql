-- health_waits: what each agent waits for; overdue is what nobody woke for five seconds, longer than a sweeper takes
SELECT agent, kind,
       count(*) FILTER (WHERE woken_at IS NULL) AS count,
       count(*) FILTER (WHERE woken_at IS NOT NULL) AS woken,
       count(*) FILTER (WHERE woken_at IS NULL AND due < now() - interval '5 seconds') AS overdue,
       min(due) FILTER (WHERE woken_at IS NULL) AS next_due
FROM wait
GROUP BY agent, kind
ORDER BY agent, kind
