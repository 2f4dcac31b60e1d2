-- part_forget: the jobs of a partition, where nothing came to them meanwhile
DELETE FROM job USING part_job WHERE job.trace_id = part_job.trace_id AND job.events = part_job.events
