-- The event log in partitions by time, and how long it is kept.

-- The policy, one row, and what came of it.
CREATE TABLE retention (
  one       boolean PRIMARY KEY DEFAULT true CHECK (one),
  keep      interval,                      -- null: for ever
  horizon   timestamptz NOT NULL DEFAULT '-infinity',  -- what was forgotten lay in Kafka before it
  jobs      bigint NOT NULL DEFAULT 0,     -- forgotten so far
  events    bigint NOT NULL DEFAULT 0,
  looked_at timestamptz,                   -- when the policy was last carried out
  held      jsonb NOT NULL DEFAULT '[]'    -- the unfinished jobs that were left then, by partition
);
INSERT INTO retention DEFAULT VALUES;

-- Up to where events were forgotten: records before these offsets that come again are not taken for new ones.
CREATE TABLE forgotten_offset (
  topic       text NOT NULL,
  partition   int NOT NULL,
  topic_id    text NOT NULL,               -- Kafka's; empty: the broker did not tell
  next_offset bigint NOT NULL,
  PRIMARY KEY (topic, partition, topic_id)
);

-- The log is copied, for a plain table cannot become a partitioned one. Readers go on until the copy takes its place, writers
-- wait. Views are bound anew: they keep their owners and grants, and what is built on them.
DO $$
DECLARE
  log      regclass := 'event_log';
  low      text := 'MINVALUE';
  high     text;
  name     text := 'event_log_past';
  year     timestamptz;
  -- The least event id of a moment: its milliseconds, then zeros.
  bound    text := $bound$ SELECT quote_literal(rpad(lpad(to_hex((extract(epoch FROM $1) * 1000)::bigint), 12, '0'), 32, '0')) $bound$;
  tied     text;
  commands text[];
  command  text;
BEGIN
  LOCK TABLE projector_offset IN EXCLUSIVE MODE;   -- first of all locks, as in a projector's own transaction
  LOCK TABLE event_log IN SHARE ROW EXCLUSIVE MODE;

  -- What a person has tied to the table and a copy cannot take over.
  SELECT string_agg(what, ', ' ORDER BY what) INTO tied FROM (
    SELECT 'materialized view ' || relation.oid::regclass AS what
    FROM pg_depend JOIN pg_rewrite ON pg_rewrite.oid = objid JOIN pg_class AS relation ON relation.oid = ev_class
    WHERE refobjid = log AND classid = 'pg_rewrite'::regclass AND relation.relkind = 'm'
    UNION
    SELECT 'foreign key ' || conname || ' of ' || conrelid::regclass FROM pg_constraint WHERE confrelid = log AND contype = 'f'
    UNION
    SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgrelid = log AND NOT tgisinternal
    UNION
    SELECT 'policy ' || polname FROM pg_policy WHERE polrelid = log
    UNION
    SELECT 'publication ' || pubname FROM pg_publication_rel JOIN pg_publication ON pg_publication.oid = prpubid WHERE prrelid = log
    UNION
    SELECT 'unique index ' || indexrelid::regclass FROM pg_index WHERE indrelid = log AND indisunique AND NOT indisprimary
    UNION
    SELECT 'function ' || objid::regprocedure FROM pg_depend WHERE refobjid = log AND classid = 'pg_proc'::regclass
  ) AS found;
  IF tied IS NOT NULL THEN
    RAISE EXCEPTION 'event_log cannot be partitioned while there are, made on it: %', tied
      USING HINT = 'Drop them, migrate, and make them again.';
  END IF;

  -- What comes again on the copy: views, grants, indexes.
  SELECT array_agg(made.command ORDER BY made.step, made.place) INTO commands FROM (
    SELECT DISTINCT 1 AS step, relation.oid::bigint AS place,
           format('CREATE OR REPLACE VIEW %s%s AS %s', relation.oid::regclass,
                  ' WITH (' || array_to_string(reloptions, ', ') || ')', pg_get_viewdef(relation.oid)) AS command
    FROM pg_depend JOIN pg_rewrite ON pg_rewrite.oid = objid JOIN pg_class AS relation ON relation.oid = ev_class
    WHERE refobjid = log AND classid = 'pg_rewrite'::regclass AND relation.relkind = 'v'
    UNION ALL
    SELECT 2, 0, format('GRANT %s%s ON event_log TO %s%s', privilege_type, columns,
                        CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                        CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
    FROM (SELECT (aclexplode(relacl)).*, '' AS columns FROM pg_class WHERE oid = log
          UNION ALL
          SELECT (aclexplode(attacl)).*, format(' (%I)', attname) FROM pg_attribute WHERE attrelid = log) AS given
    WHERE grantee <> (SELECT relowner FROM pg_class WHERE oid = log)
    UNION ALL
    SELECT 3, 0, 'DROP TABLE event_log_old'
    UNION ALL
    SELECT 4, indexrelid::bigint, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = log AND NOT indisprimary
  ) AS made;

  -- Years of which there are records, of the last three at most; months come with a policy. The farther past and what lies
  -- beyond 2100 are mostly ids that begin with a hash.
  CREATE TABLE event_log_copy (LIKE event_log INCLUDING ALL EXCLUDING INDEXES) PARTITION BY RANGE (event_id);
  SELECT date_trunc('year', greatest(least(min(logged_at), now()), now() - interval '2 years'), 'UTC') INTO year FROM event_log;
  LOOP
    EXECUTE bound INTO high USING year;
    EXECUTE format('CREATE TABLE %I PARTITION OF event_log_copy FOR VALUES FROM (%s) TO (%s)', name, low, high);
    EXIT WHEN year > now() + interval '2 months';
    name := to_char(year AT TIME ZONE 'UTC', '"event_log_"YYYY');
    low := high;
    year := (year AT TIME ZONE 'UTC' + interval '1 year') AT TIME ZONE 'UTC';
  END LOOP;
  EXECUTE bound INTO low USING timestamptz '2100-01-01 00:00Z';
  EXECUTE format('CREATE TABLE event_log_far PARTITION OF event_log_copy FOR VALUES FROM (%s) TO (MAXVALUE)', low);
  CREATE TABLE event_log_default PARTITION OF event_log_copy DEFAULT;

  INSERT INTO event_log_copy SELECT * FROM event_log;
  ALTER TABLE event_log RENAME TO event_log_old;
  ALTER TABLE event_log_copy RENAME TO event_log;
  FOREACH command IN ARRAY commands LOOP
    EXECUTE command;
  END LOOP;
  ALTER TABLE event_log ADD PRIMARY KEY (event_id);
END $$;

-- Of the table as a whole nobody else gathers statistics: autovacuum looks at partitions alone.
ANALYZE event_log;
