-- sizes: rows (an estimate; null: nobody has counted yet) and bytes of the event log's partitions and of the jobs
SELECT relation.relname, relation.relname = 'job' AS is_job,
       CASE WHEN relation.reltuples >= 0 THEN relation.reltuples::bigint
            ELSE nullif(pg_stat_get_live_tuples(relation.oid), 0) END AS rows,
       pg_table_size(relation.oid) AS table_bytes, pg_indexes_size(relation.oid) AS index_bytes
FROM pg_class AS relation
WHERE relation.oid = to_regclass('job')
   OR relation.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('event_log'))
ORDER BY relation.relname
