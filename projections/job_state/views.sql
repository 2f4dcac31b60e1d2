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
-- not due yet, or stands behind another; the oldest first. `waits_for` says for what, in words for people, and `since` when.
CREATE OR REPLACE VIEW stuck_jobs AS
SELECT stuck.trace_id, stuck.tenant, stuck.stage, stuck.status, date_trunc('second', now() - stuck.updated_at) AS idle,
       stuck.attempts, stuck.dead_letters, stuck.updated_at, reason.waits_for, reason.since
FROM (
  SELECT job.trace_id, tenant, stage, attempts, dead_letters, updated_at,
         CASE WHEN blocked_run >= run THEN 'blocked' WHEN open.it IS NOT NULL THEN 'waiting' ELSE 'running' END AS status
  FROM job
  LEFT JOIN LATERAL (SELECT true AS it FROM wait WHERE wait.trace_id = job.trace_id AND woken_at IS NULL LIMIT 1) AS open ON true
  WHERE outcome IS DISTINCT FROM 'done'    -- word by word that of the index job_unfinished
    AND (outcome = 'failed' AND lead_rank >> 32 = run) IS NOT TRUE
    AND (blocked_run >= run
         OR (updated_at < now() - interval '5 minutes'
             AND NOT EXISTS (SELECT FROM wait
                             WHERE wait.trace_id = job.trace_id AND woken_at IS NULL
                               AND (due IS NULL OR due > now() - interval '5 minutes'))))
) AS stuck
LEFT JOIN LATERAL (
  (SELECT 1 AS precedence, format('a person: step %s of %s is held', name, agent) AS waits_for, coalesce(finished_at, created_at) AS since
   FROM step
   WHERE step.trace_id = stuck.trace_id AND state = 'held'
   ORDER BY created_at LIMIT 1)
  UNION ALL
  (SELECT 2, format('a person: dead letter of %s (%s)', agent, cause), logged_at
   FROM dead_letter
   WHERE stuck.status = 'blocked' AND dead_letter.trace_id = stuck.trace_id AND answer IS NULL
   ORDER BY run DESC, logged_at LIMIT 1)
  UNION ALL
  (SELECT 3, CASE WHEN woken_at IS NOT NULL THEN format('%s: woken after its %s, and not handled yet', agent, kind)
                  WHEN due IS NULL THEN format('%s: %s an earlier event of its key', agent, kind)
                  ELSE format('%s: %s, due %s', agent, kind, date_trunc('second', due)) END,
          coalesce(woken_at, created_at)
   FROM wait
   WHERE wait.trace_id = stuck.trace_id
   ORDER BY woken_at NULLS FIRST, due LIMIT 1)
  UNION ALL
  (SELECT CASE WHEN taken.agents IS NULL THEN 5 ELSE 4 END,
          CASE WHEN taken.agents IS NOT NULL THEN format('%s: has taken %s/%s/%s', taken.agents, topic, partition, "offset")
               ELSE format('a reader of %s/%s/%s: ', topic, partition, "offset")
                    || coalesce((SELECT string_agg(DISTINCT agent, ', ' ORDER BY agent) FROM agent_offset
                                 WHERE agent_offset.topic = last.topic), 'no agent is known to read it') END,
          coalesce(taken.since, logged_at)
   FROM (SELECT event_id, topic, partition, "offset", logged_at
         FROM event_log
         WHERE event_log.trace_id = stuck.trace_id
         ORDER BY run DESC, hop DESC, occurred_at DESC, event_id DESC LIMIT 1) AS last
   LEFT JOIN LATERAL (SELECT string_agg(DISTINCT agent, ', ' ORDER BY agent) AS agents, min(created_at) AS since
                      FROM step WHERE step.event_id = last.event_id AND name = '') AS taken ON true)
  ORDER BY precedence LIMIT 1
) AS reason ON true
ORDER BY stuck.updated_at;
