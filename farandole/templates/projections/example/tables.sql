-- What the projection `example` keeps: how many events of each type a day, and when the last one happened.
-- Every table begins with CREATE TABLE IF NOT EXISTS, and has a key by which the fold finds the row to add to.
-- When this file or fold.sql changes, the tables are built anew from all events there are.
CREATE TABLE IF NOT EXISTS example (
  type    text,
  day     date,                            -- UTC
  events  bigint NOT NULL,
  last_at timestamptz NOT NULL,
  PRIMARY KEY (type, day)
) WITH (fillfactor = 50);                  -- few rows, updated often: room to do it in place
