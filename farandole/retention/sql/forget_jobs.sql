-- forget_jobs: what is of jobs alone. Steps stay, for no effect must run again; so does usage, which is money; so do parked records
WITH gone AS (DELETE FROM job WHERE trace_id = ANY (%(jobs)s)),
     conflicts AS (DELETE FROM conflict WHERE trace_id = ANY (%(jobs)s)),
     budgets AS (DELETE FROM budget WHERE key = ANY (SELECT 'job/' || trace_id FROM unnest(%(jobs)s::uuid[]) AS given (trace_id)) AND reserved = 0)
DELETE FROM event_log WHERE trace_id = ANY (%(jobs)s)
