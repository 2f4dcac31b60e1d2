-- When jobs reach each stage: how many a day, with how many attempts, and when the first and the last of the day.
CREATE TABLE IF NOT EXISTS stage_times (
  stage    text,
  day      date,                           -- UTC, as everywhere
  events   bigint NOT NULL,
  attempts bigint NOT NULL,
  first_at timestamptz NOT NULL,
  last_at  timestamptz NOT NULL,
  PRIMARY KEY (stage, day)
) WITH (fillfactor = 50);                  -- few rows, updated by every batch: room to do it in place

-- How long that took, as counts by length: percentiles do not add up from batch to batch, counts do, and over days too.
CREATE TABLE IF NOT EXISTS stage_times_counts (
  stage   text,
  day     date,
  bucket  int,                             -- eight to each doubling of the time: its middle is at most 6.3 % off
  whole   bigint NOT NULL,                 -- events that happened so long after their cause,
  waiting bigint NOT NULL,                 -- whose cause waited so long for its agent,
  working bigint NOT NULL,                 -- that their agent took so long for, retries included
  longest interval NOT NULL,               -- of the whole ones
  PRIMARY KEY (stage, day, bucket)
) WITH (fillfactor = 50);

-- Events that came before their cause did. Topics are read side by side, so that is ordinary; few are here for long.
CREATE TABLE IF NOT EXISTS stage_times_early (
  cause_id    uuid,
  event_id    uuid,
  trace_id    uuid NOT NULL,
  stage       text NOT NULL,
  emitted_by  text NOT NULL,
  run         int NOT NULL,
  occurred_at timestamptz NOT NULL,
  PRIMARY KEY (cause_id, event_id)
);
