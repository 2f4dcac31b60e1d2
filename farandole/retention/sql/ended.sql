(job.outcome = 'done' OR (job.outcome = 'failed' AND job.lead_rank >> 32 = job.run))  -- as job_state tells it
AND NOT EXISTS (SELECT FROM wait WHERE wait.trace_id = job.trace_id)
AND NOT EXISTS (SELECT FROM step WHERE step.trace_id = job.trace_id AND step.state IN ('leased', 'held'))
