-- expected: about how many events the log holds, as the server's statistics know
SELECT coalesce(sum(greatest(reltuples, 0)), 0)::bigint
FROM pg_class
WHERE oid = 'event_log'::regclass OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'event_log'::regclass)
