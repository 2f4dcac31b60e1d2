-- old_snapshots: readers that see the database as it was before a moment; to them a new table would be empty
SELECT pid, application_name, xact_start
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND backend_xmin IS NOT NULL AND xact_start < %(moment)s
ORDER BY xact_start
