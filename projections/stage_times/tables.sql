-- When jobs reach each stage: how many a day, with how many attempts, and when the first and the last of the day.
CREATE TABLE IF NOT EXISTS stage_times (
  stage    text,
  day      date,
  events   bigint NOT NULL,
  attempts bigint NOT NULL,
  first_at timestamptz NOT NULL,
  last_at  timestamptz NOT NULL,
  PRIMARY KEY (stage, day)
);
