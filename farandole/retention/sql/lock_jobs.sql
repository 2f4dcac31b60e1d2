-- lock_jobs: of some jobs those that have ended still, and that nobody is at
SELECT job.trace_id
FROM job
WHERE job.trace_id = ANY (%(jobs)s) AND job.updated_at < %(cutoff)s AND {ended}
ORDER BY job.trace_id
FOR UPDATE OF job SKIP LOCKED
