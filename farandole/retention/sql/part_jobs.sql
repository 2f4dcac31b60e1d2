-- part_jobs: the jobs that have events in a partition
CREATE TEMP TABLE part_job ON COMMIT DROP AS
SELECT trace_id, count(*) AS events, max(logged_at) AS last FROM {partition} GROUP BY trace_id
