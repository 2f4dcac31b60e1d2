-- Waits, owners of claims, workers that show themselves, partitions whose workers die, and what is known of offsets.

-- Who claimed: of two workers that hold the same record for a moment, only the later one may suspend its handling.
ALTER TABLE step ADD COLUMN owner text;
ALTER TABLE step ADD COLUMN suspended boolean NOT NULL DEFAULT false;  -- a wait has it: the record itself is done with

-- A handling that waits, with the whole record: its offset is committed, no process holds it.
CREATE TABLE wait (
  agent          text NOT NULL,
  event_id       uuid NOT NULL,
  run            int NOT NULL,
  seq            int NOT NULL,             -- how often this handling was suspended; names the wake that answers it
  kind           text NOT NULL,            -- retry: its time; behind: an earlier event of its key (order="hold")
  trace_id       uuid NOT NULL,
  due            timestamptz,              -- null: not before something else says so
  topic          text NOT NULL,            -- the record as it lay in the log, without the namespace
  partition      int NOT NULL,
  "offset"       bigint NOT NULL,
  timestamp_ms   bigint NOT NULL,
  key            bytea,
  value          bytea NOT NULL,
  headers        json NOT NULL,            -- [[name, base64 or null], …] in their order; jsonb refuses some names
  lane           bytea,                    -- with order="hold": a hash of the key, whose events wait for each other
  attempts       int NOT NULL,             -- made so far
  error          text NOT NULL,            -- the first one, for people
  created_at     timestamptz NOT NULL DEFAULT now(),
  woken_at       timestamptz,              -- a wake was sent
  wakes          int NOT NULL DEFAULT 0,
  wake_partition int,                      -- where the last wake lies in `<agent>.wake`
  wake_offset    bigint,
  look_at        timestamptz,              -- when to see whether what was to happen did
  PRIMARY KEY (agent, event_id, run)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);  -- rows come and go, whatever their number
CREATE INDEX wait_due ON wait (agent, due) WHERE woken_at IS NULL;
CREATE INDEX wait_look ON wait (agent, look_at) WHERE look_at IS NOT NULL;
CREATE INDEX wait_lane ON wait (agent, lane, partition, "offset") WHERE lane IS NOT NULL;
CREATE INDEX wait_job ON wait (trace_id);

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
  owner     text,                          -- a worker's life; null: let go in good order
  position  bigint NOT NULL,               -- committed when it was taken, with a record in hand
  deaths    int NOT NULL DEFAULT 0,        -- of owners in a row at this position
  until     bigint,                        -- records before this offset are handled alone; null: none
  suspect   bigint,                        -- the record that was last handled alone, until it is committed
  alone     boolean NOT NULL DEFAULT false,  -- it is in hand now, and nothing else is in that process
  kills     int NOT NULL DEFAULT 0,        -- owners that died meanwhile
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
