-- session: what a projector's connection has for itself: the batch as copied, of which the folds see the rows that are new
SET idle_in_transaction_session_timeout = '15s';  -- a projector frozen inside a transaction must not keep its partitions
SET jit = off;
SET temp_buffers = '80MB';  -- a batch of events of 4 kB, of which nothing need be written to a file
SET work_mem = '64MB';  -- and the sort of it
CREATE TEMP TABLE incoming (LIKE event_log INCLUDING COMPRESSION) ON COMMIT DELETE ROWS;
ALTER TABLE incoming SET (toast_tuple_target = 8160);  -- in one piece where a page holds it: it lives for a moment only
CREATE TEMP TABLE fresh (event_id uuid, topic text, partition int, "offset" bigint) ON COMMIT DELETE ROWS;
CREATE TEMP VIEW new_events AS SELECT * FROM incoming;
