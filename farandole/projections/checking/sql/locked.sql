-- locked: the relations that this transaction has used so far, and whether it may have changed them
SELECT namespace.nspname, class.relname, class.relkind::text,
       bool_or(lock.mode IN ('RowExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
FROM pg_locks AS lock
JOIN pg_class AS class ON class.oid = lock.relation
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE lock.pid = pg_backend_pid() AND lock.locktype = 'relation'
  AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND class.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
  AND namespace.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND namespace.nspname NOT LIKE 'pg\_temp%'
GROUP BY namespace.nspname, class.relname, class.relkind
ORDER BY namespace.nspname, class.relname
