-- The event log in partitions by time, and how long it is kept.
SELECT;
