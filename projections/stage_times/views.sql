-- stage_durations: how long jobs took to reach each stage in the last 24 hours, waiting and working together.
-- Medians do not add up from batch to batch, so they are not folded but computed when someone looks.
CREATE OR REPLACE VIEW stage_durations AS
SELECT effect.stage, count(*) AS events,
       percentile_cont(0.5)  WITHIN GROUP (ORDER BY effect.occurred_at - cause.occurred_at) AS median,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY effect.occurred_at - cause.occurred_at) AS p95,
       max(effect.occurred_at - cause.occurred_at) AS longest
FROM event_log AS effect
JOIN event_log AS cause ON cause.event_id = effect.causation_id
WHERE effect.stage IS NOT NULL AND effect.occurred_at > now() - interval '24 hours'
GROUP BY effect.stage
ORDER BY max(effect.hop);
