-- What a person decides about parked records, and what is needed to read them once more.
ALTER TABLE parked
  ADD COLUMN timestamp_ms bigint,          -- Kafka's
  ADD COLUMN retried_at   timestamptz,     -- tried again last, and parked still
  ADD COLUMN discarded_at timestamptz,     -- given up by a person; the bytes stay
  ADD COLUMN reason       text;            -- why it was given up

-- The ids of a record that does not tell them are made of its timestamp. The id of a job without a key starts with it; for
-- the others the time of parking is the nearest that is known.
UPDATE parked
SET timestamp_ms = CASE WHEN coalesce(length(key), 0) = 0
                        THEN ('x' || left(replace(trace_id::text, '-', ''), 12))::bit(48)::bigint
                        ELSE (extract(epoch FROM parked_at) * 1000)::bigint END;

-- A topic that was deleted and made again has the same offsets; the timestamp tells its records from the old ones.
ALTER TABLE parked DROP CONSTRAINT parked_pkey, ADD PRIMARY KEY (topic, partition, "offset", timestamp_ms);
