-- job: counts add up, times widen, and of two events the one with the greater key leads, in whatever order they come.
WITH event AS MATERIALIZED (                -- narrow, and read twice
  SELECT trace_id, event_id, tenant, run, hop, attempt, stage, outcome, occurred_at,
         CASE WHEN outcome IN ('done', 'failed') THEN run * 4294967296 + 2147483648 + hop
              WHEN stage IS NOT NULL             THEN run * 4294967296 + hop
              ELSE -1 END AS rank              -- leaves the job where it is
  FROM new_events
), counted AS (
  SELECT trace_id, max(tenant) AS tenant, max(run) AS run, max(hop) AS hop, max(rank) AS rank,
         count(*) AS events, sum(attempt) AS attempts, count(*) FILTER (WHERE outcome = 'blocked') AS dead_letters,
         coalesce(max(run) FILTER (WHERE outcome = 'blocked'), -1) AS blocked_run,
         min(occurred_at) AS created_at, max(occurred_at) AS updated_at
  FROM event
  GROUP BY trace_id
), lead AS (
  SELECT DISTINCT ON (trace_id) trace_id, stage, outcome, occurred_at, event_id
  FROM event JOIN counted USING (trace_id, rank)
  WHERE rank >= 0
  ORDER BY trace_id, occurred_at DESC, event_id DESC
)
INSERT INTO job AS old
SELECT trace_id, tenant, run, hop, events, attempts, dead_letters, blocked_run, created_at, updated_at,
       coalesce(stage, outcome), nullif(outcome, 'blocked'), rank, coalesce(occurred_at, '-infinity'),
       coalesce(event_id, '00000000-0000-0000-0000-000000000000')
FROM counted LEFT JOIN lead USING (trace_id)
ORDER BY trace_id                          -- every projector takes its rows in this order, or two could wait in a circle
ON CONFLICT (trace_id) DO UPDATE SET
  tenant       = greatest(old.tenant, excluded.tenant),
  run          = greatest(old.run, excluded.run),
  hop          = greatest(old.hop, excluded.hop),
  events       = old.events + excluded.events,
  attempts     = old.attempts + excluded.attempts,
  dead_letters = old.dead_letters + excluded.dead_letters,
  blocked_run  = greatest(old.blocked_run, excluded.blocked_run),
  created_at   = least(old.created_at, excluded.created_at),
  updated_at   = greatest(old.updated_at, excluded.updated_at),
  (stage, outcome, lead_rank, lead_at, lead_id) = (
    SELECT CASE WHEN leads THEN excluded.stage     ELSE old.stage     END,
           CASE WHEN leads THEN excluded.outcome   ELSE old.outcome   END,
           CASE WHEN leads THEN excluded.lead_rank ELSE old.lead_rank END,
           CASE WHEN leads THEN excluded.lead_at   ELSE old.lead_at   END,
           CASE WHEN leads THEN excluded.lead_id   ELSE old.lead_id   END
    FROM (SELECT (excluded.lead_rank, excluded.lead_at, excluded.lead_id)
               > (old.lead_rank, old.lead_at, old.lead_id) AS leads) AS compared);
