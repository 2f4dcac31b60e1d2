-- Waits, owners of claims, workers that show themselves, and partitions whose workers die.

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

-- Every dead letter, and what answered it: nothing yet, a redrive or a discard.
CREATE VIEW dead_letter AS
SELECT letter.event_id, letter.trace_id, letter.run, letter.hop, letter.scope_id, letter.part, letter.parts, letter.tenant,
       letter.body->>'agent' AS agent, letter.body->>'cause' AS cause, letter.body->>'error' AS error,
       (letter.body->>'attempts')::int AS attempts, letter.body->>'dead_letter_topic' AS dead_letter_topic,
       letter.body->>'origin_topic' AS origin_topic, (letter.body->>'origin_partition')::int AS origin_partition,
       (letter.body->>'origin_offset')::bigint AS origin_offset, letter.logged_at,
       answer.answer, answer.reason, answer.logged_at AS answered_at
FROM event_log AS letter
LEFT JOIN LATERAL (
  SELECT CASE WHEN type LIKE '%.JobRedriven' THEN 'redriven' ELSE 'discarded' END AS answer,
         body->>'reason' AS reason, logged_at
  FROM event_log
  WHERE event_log.trace_id = letter.trace_id AND event_log.causation_id = letter.event_id
    AND (type LIKE '%.JobRedriven' OR type LIKE '%.JobDiscarded')
  ORDER BY logged_at, event_id
  LIMIT 1
) AS answer ON true
WHERE letter.outcome = 'blocked' AND letter.type LIKE '%.JobDeadLettered';

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
