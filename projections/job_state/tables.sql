-- Where every job stands: one narrow row a job. What each stage said is gathered from event_log when someone looks.
CREATE TABLE IF NOT EXISTS job (
  trace_id     uuid PRIMARY KEY,
  tenant       text,
  run          int NOT NULL,               -- the latest
  hop          int NOT NULL,               -- the farthest
  events       bigint NOT NULL,
  attempts     bigint NOT NULL,
  dead_letters bigint NOT NULL,
  blocked_run  int NOT NULL,               -- the latest run in which something was dead-lettered; -1: none
  created_at   timestamptz NOT NULL,
  updated_at   timestamptz NOT NULL,
  -- What the job's leading event says: the greatest by (rank, occurred_at, event_id), whenever it came. None yet: rank -1.
  stage        text,
  outcome      text,                       -- done or failed; null: the job goes on
  lead_rank    bigint NOT NULL,            -- the run first, then whether it ends the job, then the hop
  lead_at      timestamptz NOT NULL,
  lead_id      uuid NOT NULL
) WITH (fillfactor = 70);                  -- room to update a job in place, hop by hop
-- What is stuck is looked for among millions that are done. Of its columns `outcome` alone ever changes, and once: an update on
-- the way leaves every index alone.
CREATE INDEX IF NOT EXISTS job_unfinished ON job (trace_id) WHERE outcome IS DISTINCT FROM 'done';
