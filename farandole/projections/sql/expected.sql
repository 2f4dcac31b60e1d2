-- expected: about how many events the log holds, as the server's statistics know of its partitions
SELECT coalesce(sum(greatest(reltuples, 0)), 0)::bigint
FROM pg_partition_tree('event_log')
JOIN pg_class ON pg_class.oid = relid
WHERE isleaf
