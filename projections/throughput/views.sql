-- throughput_hour: the last sixty minutes, one row each, quiet ones too; the newest first.
CREATE OR REPLACE VIEW throughput_hour AS
SELECT minute, coalesce(events, 0) AS events, coalesce(begun, 0) AS begun, coalesce(done, 0) AS done,
       coalesce(failed, 0) AS failed, coalesce(blocked, 0) AS blocked
FROM generate_series(date_trunc('minute', now()) - interval '59 minutes', now(), interval '1 minute') AS minute
LEFT JOIN throughput USING (minute)
ORDER BY minute DESC;
