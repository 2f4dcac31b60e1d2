-- Projections: registered by hash, with their SQL, and built beside the live ones.

-- What is live. The SQL lies here, so that every projector folds the same, whatever files it has. The column's new name
-- stops projectors of older versions: they would not tell a build what they fold.
ALTER TABLE projection RENAME COLUMN suspended TO error;
ALTER TABLE projection ADD COLUMN tables text, ADD COLUMN fold text, ADD COLUMN views text;

-- What is to become live: at most one build a projection, the newest that was wanted.
CREATE TABLE projection_build (
  name         text PRIMARY KEY,
  hash         text NOT NULL,
  tables       text NOT NULL,
  fold         text NOT NULL,
  views        text NOT NULL,
  state        text NOT NULL DEFAULT 'wanted' CHECK (state IN ('wanted', 'building', 'failed')),
  upto         uuid,                       -- event ids up to this one are folded by range, later ones through the backlog
  reached      uuid,                       -- the last id that was; null: none yet
  folded       bigint NOT NULL DEFAULT 0,  -- events
  expected     bigint NOT NULL DEFAULT 0,  -- about as many are to be folded
  error        text,                       -- failed: why
  wanted_at    timestamptz NOT NULL DEFAULT now(),
  moved_at     timestamptz NOT NULL DEFAULT now()
);

-- Events that came since a build began: the projectors write them here in the transaction that folds them elsewhere.
CREATE TABLE projection_backlog (
  name     text NOT NULL,
  event_id uuid NOT NULL,
  PRIMARY KEY (name, event_id)
);
