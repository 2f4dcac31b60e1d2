-- journey: every event of one job, causes before their effects; waited until its agent claimed the cause, worked since then
SELECT event_id, causation_id, type, stage, outcome, body, occurred_at, took,
       CASE WHEN claim IS NOT NULL                        -- bounded, as two machines' clocks may disagree
            THEN greatest(least(claim.created_at - (occurred_at - took), took), '0') END AS waited,
       CASE WHEN claim IS NOT NULL THEN greatest(least(occurred_at - claim.created_at, took), '0') END AS worked,
       since_start, emitted_by, journey.run, hop, attempt, part, parts, journey.topic, journey.partition, journey."offset",
       logged_at, sanitised
FROM journey
LEFT JOIN LATERAL (
  SELECT step.created_at
  FROM step
  WHERE step.event_id = journey.causation_id AND step.agent = split_part(journey.emitted_by, ' ', 1) AND step.name = ''
  ORDER BY step.run DESC
  LIMIT 1
) AS claim ON true
WHERE trace_id = %(trace_id)s
ORDER BY hop, occurred_at, event_id
