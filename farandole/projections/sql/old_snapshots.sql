-- old_snapshots: transactions that see the database as it was before a moment; to them a new table would be empty.
-- A single statement that still runs has its tables already: it is not among them.
SELECT pid, application_name, xact_start
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND backend_xmin IS NOT NULL AND xact_start < %(moment)s AND xact_start <> query_start
ORDER BY xact_start
