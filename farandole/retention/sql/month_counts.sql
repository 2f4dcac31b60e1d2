-- month_counts: the jobs and events of a partition, and how many jobs keep it: not ended, moved of late, or with events elsewhere
SELECT count(*), coalesce(sum(month_job.events), 0)::bigint,
       count(*) FILTER (WHERE (job.events = month_job.events AND job.updated_at < %(cutoff)s
                               AND month_job.last < %(cutoff)s AND {ended}) IS NOT TRUE)
FROM month_job LEFT JOIN job USING (trace_id)
