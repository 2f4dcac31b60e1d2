-- slot_holder: the session that holds an advisory lock of this database, and what it calls itself
SELECT activity.pid, activity.application_name
FROM pg_locks JOIN pg_stat_activity AS activity USING (pid)
WHERE pg_locks.locktype = 'advisory' AND pg_locks.granted AND pg_locks.objsubid = 1
  AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND ((pg_locks.classid::bigint << 32) | pg_locks.objid::bigint) = %s
