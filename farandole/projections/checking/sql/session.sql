-- session: what each connection of a check has for itself
SET idle_in_transaction_session_timeout = '60s';
SET statement_timeout = '30s';
SET lock_timeout = '10s';
SET synchronous_commit = off;              -- nothing here is to outlive the check
SET jit = off;
CREATE TEMP TABLE new_events (LIKE event_log) ON COMMIT DELETE ROWS;
