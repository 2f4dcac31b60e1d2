-- month_forget: the jobs of a partition, where nothing came to them meanwhile
DELETE FROM job USING month_job WHERE job.trace_id = month_job.trace_id AND job.events = month_job.events
