-- failing: what failed in the last seven days, the latest first; `last_job` is the one to look at.
CREATE OR REPLACE VIEW failing AS
SELECT agent, outcome, cause, times, date_trunc('second', now() - first_seen) AS since,
       date_trunc('second', now() - last_seen) AS last, last_job, left(last_error, 80) AS last_error
FROM failures
WHERE last_seen > now() - interval '7 days'
ORDER BY last_seen DESC, agent, cause;
