-- journey: every event of one job, causes before their effects
SELECT event_id, causation_id, type, stage, outcome, body, occurred_at, took, since_start, emitted_by, run, hop, attempt,
       part, parts, topic, partition, "offset", logged_at, sanitised
FROM journey
WHERE trace_id = %(trace_id)s
ORDER BY hop, occurred_at, event_id
