-- reached: which of these goals are reached: an event is folded, a journey has a stage, or a job has ended or is blocked.
-- Laterals with LIMIT, or the planner may hash the whole log for a handful of jobs.
SELECT goal.n::int AS n
FROM unnest(%(trace_ids)s::uuid[], %(stages)s::text[], %(event_ids)s::uuid[]) WITH ORDINALITY AS goal (trace_id, stage, event_id, n)
JOIN LATERAL (
  (SELECT FROM event_log WHERE event_log.event_id = goal.event_id LIMIT 1)
  UNION ALL
  (SELECT FROM event_log WHERE goal.event_id IS NULL AND event_log.trace_id = goal.trace_id AND event_log.stage = goal.stage LIMIT 1)
  UNION ALL
  (SELECT FROM job_state
   WHERE goal.event_id IS NULL AND job_state.trace_id = goal.trace_id
     AND CASE WHEN goal.stage IS NULL THEN job_state.status IN ('done', 'failed', 'blocked')
              ELSE job_state.stage = goal.stage END
   LIMIT 1)
) AS met ON true
GROUP BY goal.n
