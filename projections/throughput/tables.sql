-- What happened in each minute, by the events' own clocks.
CREATE TABLE IF NOT EXISTS throughput (
  minute  timestamptz PRIMARY KEY,
  events  bigint NOT NULL,
  begun   bigint NOT NULL,                 -- events that nothing caused: jobs that came in
  done    bigint NOT NULL,                 -- events that end their job; a job that fails and is redriven ends twice
  failed  bigint NOT NULL,
  blocked bigint NOT NULL                  -- dead letters
) WITH (fillfactor = 50);                  -- the last minutes are updated by every batch: room to do it in place
