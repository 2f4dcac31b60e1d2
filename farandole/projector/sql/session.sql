-- session: what a projector's connection has for itself: the batch as copied, and the rows of it that were new
SET idle_in_transaction_session_timeout = '15s';  -- a projector frozen inside a transaction must not keep its partitions
SET jit = off;
CREATE TEMP TABLE incoming (LIKE event_log) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE new_events (LIKE event_log) ON COMMIT DELETE ROWS;
