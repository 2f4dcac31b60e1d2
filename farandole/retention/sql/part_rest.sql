-- part_rest: what else is of these jobs alone
WITH conflicts AS (DELETE FROM conflict USING part_job WHERE conflict.trace_id = part_job.trace_id)
DELETE FROM budget USING part_job WHERE key = 'job/' || part_job.trace_id AND reserved = 0
