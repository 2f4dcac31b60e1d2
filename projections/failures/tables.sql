-- What fails where, how often, since when; and of the last time, which job and what was said.
CREATE TABLE IF NOT EXISTS failures (
  agent      text,
  outcome    text,                         -- blocked: a dead letter, which waits for a person; failed: the job's end
  cause      text,                         -- the dead letter's cause; the reason of a failure; else the event's type
  times      bigint NOT NULL,
  first_seen timestamptz NOT NULL,
  last_seen  timestamptz NOT NULL,
  last_event uuid NOT NULL,                -- of two at the same time the greater id is the last
  last_job   uuid NOT NULL,                -- its trace_id: an example to look at
  last_error text,
  PRIMARY KEY (agent, outcome, cause)
) WITH (fillfactor = 50);
