-- Effects and their results beside the claims in `step`, what each model call cost, budgets, and limits shared by all workers.

-- An effect has run 0 and a state; a claim has no state. Finished effects survive a redrive, which raises the run.
ALTER TABLE step
  ADD COLUMN state       text CHECK (state IN ('leased', 'done', 'failed', 'held', 'forgotten')),
  ADD COLUMN trace_id    uuid,
  ADD COLUMN generation  int,              -- raised when a person has it forgotten; part of the idempotency key
  ADD COLUMN begun       int,              -- how often the call was begun
  ADD COLUMN lease_until timestamptz,      -- leased: who holds it lives, as far as this
  ADD COLUMN hold        boolean,          -- if_unknown="hold": a call whose outcome nobody knows waits for a person
  ADD COLUMN result      text,             -- done: JSON
  ADD COLUMN trail       text,             -- a model's replies so far that did not do: JSON
  ADD COLUMN error       text,             -- of the last call, for people
  ADD COLUMN failure     text,             -- failed for good in the run `failed_run`: JSON, raised again there
  ADD COLUMN failed_run  int,
  ADD COLUMN call_id     uuid,             -- the model call under way: its row of `usage`, when it ends
  ADD COLUMN model       text,
  ADD COLUMN reserved    bigint,           -- for it, micro-dollars, in each of
  ADD COLUMN budgets     text[],           -- these rows of `budget`
  ADD COLUMN tenant      text,
  ADD COLUMN finished_at timestamptz;
CREATE INDEX step_effect ON step (trace_id) WHERE state IS NOT NULL;
CREATE INDEX step_unfinished ON step (agent, state) WHERE state IN ('leased', 'held');

-- One row a real call of a model, failed ones included.
CREATE TABLE usage (
  call_id            uuid PRIMARY KEY,
  at                 timestamptz NOT NULL DEFAULT now(),   -- when it ended
  trace_id           uuid NOT NULL,
  event_id           uuid NOT NULL,
  agent              text NOT NULL,
  step               text NOT NULL,
  tenant             text,
  model              text NOT NULL,
  input_tokens       bigint,               -- neither read from nor written to the cache. null: the API did not tell
  output_tokens      bigint,
  cache_read_tokens  bigint,
  cache_write_tokens bigint,
  micro_dollars      bigint,               -- null: no price is known. Of outcome `unknown`: the upper bound that was reserved
  latency_ms         bigint,
  stop_reason        text,
  outcome            text NOT NULL,        -- answered, or why not: a word of farandole.models.errors, or `unknown` (its worker died)
  request_id         text,                 -- the API's, for its support
  budgets            text[]                -- rows of `budget` that it was booked in
);
CREATE INDEX usage_job ON usage (trace_id);
CREATE INDEX usage_at ON usage (at);

-- What was spent and is reserved, micro-dollars. Never above its limit, which is the caller's: budgets are configuration.
CREATE TABLE budget (
  key        text PRIMARY KEY,             -- job/<trace_id>, agent/<name>/<day>, day/<day>, tenant/<name>/<day>; days are UTC
  spent      bigint NOT NULL DEFAULT 0,
  reserved   bigint NOT NULL DEFAULT 0,
  updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- How fast one key may call one model, and whether it may now; shared by all workers, on this database's clock.
CREATE TABLE model_pace (
  key            text NOT NULL,            -- a fingerprint of the API key
  model          text NOT NULL,
  requests_at    timestamptz NOT NULL DEFAULT to_timestamp(0),  -- theoretical arrival times (GCRA): the next call is due
  input_at       timestamptz NOT NULL DEFAULT to_timestamp(0),
  output_at      timestamptz NOT NULL DEFAULT to_timestamp(0),
  input_largest  double precision NOT NULL DEFAULT 1,  -- tokens of the largest call of late; halved every minute
  output_largest double precision NOT NULL DEFAULT 1,
  input_share    double precision NOT NULL DEFAULT 1,  -- learned: tokens that were used, of those that were estimated
  output_share   double precision NOT NULL DEFAULT 1,
  requests_told  double precision,         -- the API's own limits a minute, as its last response told them
  input_told     double precision,
  output_told    double precision,
  closed_until   timestamptz NOT NULL DEFAULT to_timestamp(0),  -- nobody calls before
  reason         text,
  failures       int NOT NULL DEFAULT 0,   -- in a row
  level          int NOT NULL DEFAULT 0,   -- of the brake; above 0 only probes call, and each that fails raises it
  probe_owner    text,
  probe_until    timestamptz NOT NULL DEFAULT to_timestamp(0),  -- by then it has ended, or its worker has
  reopened_at    timestamptz NOT NULL DEFAULT to_timestamp(0),  -- from then on gradually
  next_at        timestamptz NOT NULL DEFAULT to_timestamp(0),  -- while it reopens: the next call is due
  updated_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (key, model)
) WITH (fillfactor = 20);                  -- one busy row: updated within its page
