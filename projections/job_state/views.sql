-- job_state: where each job is, what each stage said last (`data`, gathered only when it is selected), and what its model
-- calls cost.
CREATE OR REPLACE VIEW job_state AS
SELECT job.trace_id, job.tenant, job.stage,
       CASE WHEN job.outcome = 'done' OR (job.outcome = 'failed' AND job.lead_rank >> 32 = job.run) THEN job.outcome
            -- a failure of an earlier run is history: something has begun anew since
            WHEN job.blocked_run >= job.run THEN 'blocked'
            WHEN EXISTS (SELECT FROM wait WHERE wait.trace_id = job.trace_id AND wait.woken_at IS NULL) THEN 'waiting'
            ELSE 'running' END AS status,
       (SELECT jsonb_object_agg(stage, body ORDER BY run, (outcome IN ('done', 'failed')) IS TRUE, hop, occurred_at, event_id)
        FROM event_log
        WHERE event_log.trace_id = job.trace_id AND stage IS NOT NULL) AS data,   -- the last of a stage stays
       job.attempts, job.run, job.hop, job.events, job.dead_letters,
       (SELECT count(*) FROM conflict WHERE conflict.trace_id = job.trace_id) AS conflicts,
       (SELECT count(*) FROM parked WHERE parked.trace_id = job.trace_id AND discarded_at IS NULL) AS parked,
       job.created_at, job.updated_at,
       spent.calls, spent.tokens, spent.cost_micro_dollars, round(spent.cost_micro_dollars::numeric / 1000000, 6) AS cost   -- dollars
FROM job
LEFT JOIN LATERAL (
  SELECT count(*) AS calls,
         coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)
                      + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)), 0)::bigint AS tokens,
         coalesce(sum(micro_dollars), 0)::bigint AS cost_micro_dollars
  FROM usage
  WHERE usage.trace_id = job.trace_id
) AS spent ON true;

-- journey: one row an event, causes before their effects. `took` is waiting and working, since the cause happened.
CREATE OR REPLACE VIEW journey AS
SELECT event.trace_id, event.hop, event.type, event.stage, event.outcome, event.body,
       event.occurred_at,
       event.occurred_at - (SELECT cause.occurred_at FROM event_log AS cause
                            WHERE cause.event_id = event.causation_id) AS took,   -- by key, however large the log is
       event.occurred_at - job.created_at AS since_start,
       event.emitted_by, event.run, event.attempt, event.part, event.parts,
       event.event_id, event.causation_id, event.topic, event.partition, event."offset", event.logged_at, event.sanitised
FROM event_log AS event
JOIN job USING (trace_id)
ORDER BY event.hop, event.occurred_at, event.event_id;

-- stuck_jobs: not ended, and either a person is needed or nothing happens: no event for five minutes, and no wait that is
-- not due yet, or stands behind another; the oldest first.
CREATE OR REPLACE VIEW stuck_jobs AS
SELECT trace_id, tenant, stage, status, date_trunc('second', now() - updated_at) AS idle, attempts, dead_letters, updated_at
FROM job_state
WHERE status = 'blocked'
   OR (status IN ('running', 'waiting') AND updated_at < now() - interval '5 minutes'
       AND NOT EXISTS (SELECT FROM wait
                       WHERE wait.trace_id = job_state.trace_id AND wait.woken_at IS NULL
                         AND (wait.due IS NULL OR wait.due > now() - interval '5 minutes')))
ORDER BY updated_at;
