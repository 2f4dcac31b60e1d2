-- The log of events, the projector's positions and what it set aside, and the agents' steps.

-- One row an event: the journey of every job. `value` is the record's value as it lay in Kafka, whatever `body` shows.
CREATE TABLE event_log (
  event_id     uuid PRIMARY KEY,
  trace_id     uuid NOT NULL,
  causation_id uuid,
  type         text NOT NULL,              -- full Avro name
  stage        text,                       -- null: leaves the job where it is
  outcome      text CHECK (outcome IN ('done', 'failed', 'blocked')),
  emitted_by   text NOT NULL,
  run          int NOT NULL,
  hop          int NOT NULL,
  attempt      int NOT NULL,
  scope_id     uuid,
  part         int,
  parts        int,
  tenant       text,
  occurred_at  timestamptz NOT NULL,       -- the emitter's clock
  topic        text NOT NULL,              -- without the namespace
  partition    int NOT NULL,
  "offset"     bigint NOT NULL,
  logged_at    timestamptz NOT NULL,       -- Kafka's timestamp
  value        bytea NOT NULL,
  body         jsonb,                      -- the payload alone, readable; null where it has no JSON form
  sanitised    boolean NOT NULL,           -- `body` or a text column differs from `value`: NUL, NaN, lone surrogates
  content_hash bigint NOT NULL             -- of the payload alone: a rerun's other time or attempt is no conflict
);
CREATE INDEX event_log_journey ON event_log (trace_id);

-- lz4 reads faster than pglz; not every build of Postgres has it.
DO $$
BEGIN
  IF 'lz4' = ANY (SELECT unnest(enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
    ALTER TABLE event_log ALTER COLUMN value SET COMPRESSION lz4, ALTER COLUMN body SET COMPRESSION lz4;
  END IF;
END $$;

-- Where the projector is in each partition, and who may write there. The lock on a row is the right to fold its records.
CREATE TABLE projector_offset (
  topic       text NOT NULL,
  partition   int NOT NULL,
  topic_id    text,                        -- Kafka's; a recreated topic has another
  next_offset bigint,                      -- null: nothing was folded yet, start where the log starts
  owner       text,
  epoch       bigint NOT NULL DEFAULT 1,   -- raised by every claim; a writer that holds an older one is refused
  gap         text,                        -- why this partition stands still until a person decides
  updated_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (topic, partition)
) WITH (fillfactor = 50);

-- Records that cannot be an event, as they lay in Kafka.
CREATE TABLE parked (
  topic     text NOT NULL,
  partition int NOT NULL,
  "offset"  bigint NOT NULL,
  key       bytea,
  value     bytea,
  headers   jsonb NOT NULL,                -- [[name, base64 or null], …] in their order
  trace_id  uuid NOT NULL,                 -- the job, as far as key and place tell
  cause     text NOT NULL,
  error     text NOT NULL,
  parked_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (topic, partition, "offset")
);
CREATE INDEX parked_job ON parked (trace_id);

-- The same event id with another payload: the first one stays in event_log, the others are counted here.
CREATE TABLE conflict (
  topic        text NOT NULL,
  partition    int NOT NULL,
  "offset"     bigint NOT NULL,
  event_id     uuid NOT NULL,
  trace_id     uuid NOT NULL,
  content_hash bigint NOT NULL,
  seen_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (topic, partition, "offset")
);
CREATE INDEX conflict_job ON conflict (trace_id);

-- The projections that are folded; a fold whose hash differs is rebuilt from event_log before it goes on.
CREATE TABLE projection (
  name       text PRIMARY KEY,
  hash       text NOT NULL,                -- of tables.sql and fold.sql
  views_hash text,
  suspended  text,                         -- the error that stopped it; the others go on
  folded_at  timestamptz NOT NULL DEFAULT now()
);

-- What an agent did about an event. A claim has the empty name.
CREATE TABLE step (
  event_id   uuid NOT NULL,
  agent      text NOT NULL,
  name       text NOT NULL DEFAULT '',
  run        int NOT NULL DEFAULT 0,
  topic      text,                         -- the record that was claimed, without the namespace
  partition  int,
  "offset"   bigint,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (event_id, agent, name, run)
);
