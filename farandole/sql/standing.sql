-- standing: how many of some jobs are in each stage and status
SELECT stage, status, count(*)
FROM job_state
WHERE trace_id = ANY (%(trace_ids)s)
GROUP BY stage, status
