-- written: tables outside of a schema that this transaction means to write to; a statement locks them, rows or not
SELECT relation::regclass::text
FROM pg_locks
JOIN pg_class ON pg_class.oid = pg_locks.relation
WHERE pid = pg_backend_pid() AND locktype = 'relation' AND mode = 'RowExclusiveLock' AND relkind IN ('r', 'p')
  AND relnamespace NOT IN (%(schema)s::regnamespace, 'pg_catalog'::regnamespace, pg_my_temp_schema())
  AND relname NOT IN ('projection_build', 'projection_backlog')
ORDER BY 1
