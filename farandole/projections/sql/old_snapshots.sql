-- old_snapshots: transactions that see the database as it was before a moment; to them a new table would be empty.
-- A single statement that still runs has its tables already: it is not among them. Of other roles' sessions a plain role is
-- shown nothing but the snapshot: there a statement that still runs counts too.
SELECT pid, coalesce(application_name, usename), xact_start
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL
  AND (backend_type = 'client backend' AND xact_start < %(moment)s AND (xact_start <> query_start OR state <> 'active')
       OR backend_type IS NULL AND xact_start IS NULL AND age(backend_xmin) > age(%(next)s::text::xid8::xid))
ORDER BY xact_start
