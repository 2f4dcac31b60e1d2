-- month_rest: what else is of these jobs alone
WITH conflicts AS (DELETE FROM conflict USING month_job WHERE conflict.trace_id = month_job.trace_id)
DELETE FROM budget USING month_job WHERE key = 'job/' || month_job.trace_id AND reserved = 0
