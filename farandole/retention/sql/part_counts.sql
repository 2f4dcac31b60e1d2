-- part_counts: the jobs and events of a partition, and how many jobs keep it: not ended, moved of late, or with events elsewhere
SELECT count(*), coalesce(sum(part_job.events), 0)::bigint,
       count(*) FILTER (WHERE (job.events = part_job.events AND job.updated_at < %(cutoff)s
                               AND part_job.last < %(cutoff)s AND {ended}) IS NOT TRUE)
FROM part_job LEFT JOIN job USING (trace_id)
