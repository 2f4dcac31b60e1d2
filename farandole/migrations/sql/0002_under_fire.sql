-- Waits, owners of claims, workers that show themselves, partitions whose workers die, and what is known of offsets.

-- Who claimed: of two workers that hold the same record for a moment, only the later one may suspend its handling.
ALTER TABLE step ADD COLUMN owner text;
ALTER TABLE step ADD COLUMN suspended boolean NOT NULL DEFAULT false;  -- a wait has it: the record itself is done with

-- A handling that waits, with the whole record: its offset is committed, no process holds it.
CREATE TABLE wait (
  agent        text NOT NULL,
  event_id     uuid NOT NULL,
  run          int NOT NULL,
  seq          int NOT NULL,               -- how often this handling was suspended; names the wake that answers it
  kind         text NOT NULL,              -- retry: its time; behind: an earlier event of its key (order="hold")
  trace_id     uuid NOT NULL,
  due          timestamptz,                -- null: not before something else says so
  topic        text NOT NULL,              -- the record as it lay in the log, without the namespace
  partition    int NOT NULL,
  "offset"     bigint NOT NULL,
  timestamp_ms bigint NOT NULL,
  key          bytea,
  value        bytea NOT NULL,
  headers      jsonb NOT NULL,             -- [[name, base64 or null], …] in their order
  attempts     int NOT NULL,               -- made so far
  error        text NOT NULL,              -- the first one, for people
  created_at   timestamptz NOT NULL DEFAULT now(),
  woken_at     timestamptz,                -- a wake was sent
  wakes        int NOT NULL DEFAULT 0,
  PRIMARY KEY (agent, event_id, run)
);
CREATE INDEX wait_due ON wait (agent, due) WHERE woken_at IS NULL;
CREATE INDEX wait_job ON wait (trace_id);
CREATE INDEX wait_key ON wait (agent, key);

-- What is blocked is looked for by agent and cause among millions of events.
CREATE INDEX event_log_blocked ON event_log (logged_at) WHERE outcome = 'blocked';

-- Workers as they last showed themselves.
CREATE TABLE worker (
  agent      text NOT NULL,
  slot       int NOT NULL,
  host       text NOT NULL,
  pid        int NOT NULL,
  started_at timestamptz NOT NULL,
  beat_at    timestamptz NOT NULL DEFAULT now(),
  vitals     jsonb NOT NULL,               -- in flight, paused, counts, last error, why it stands still
  PRIMARY KEY (agent, slot)
);

-- Partitions whose workers ended without letting go: records that kill are found one by one.
CREATE TABLE lifeline (
  agent     text NOT NULL,
  topic     text NOT NULL,
  partition int NOT NULL,
  owner     text,                          -- null: let go in good order
  position  bigint NOT NULL,               -- committed when it was taken
  deaths    int NOT NULL DEFAULT 0,        -- in a row at this position
  alone     bigint,                        -- the record being handled alone; null: none
  kills     int NOT NULL DEFAULT 0,        -- of that record
  until     bigint,                        -- records before this offset are handled alone
  PRIMARY KEY (agent, topic, partition)
);

-- What is known of an agent's partitions beside the offsets in Kafka: which topic they belong to, and that there were any.
CREATE TABLE agent_offset (
  agent      text NOT NULL,
  topic      text NOT NULL,                -- without the namespace
  partition  int NOT NULL,
  topic_id   text,                         -- Kafka's; a recreated topic has another. null: the broker did not tell
  position   bigint,                       -- committed when last looked at; null: none ever was
  gap        text,                         -- why the agent stands still until a person decides
  go_on_at   bigint,                       -- where that person wants it to go on; taken up at the next assignment
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (agent, topic, partition)
);
