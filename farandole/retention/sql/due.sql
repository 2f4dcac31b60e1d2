-- due: the jobs of some ranges of ids that may be forgotten
CREATE TEMP TABLE due AS
SELECT job.trace_id
FROM unnest(%(lows)s::uuid[], %(highs)s::uuid[]) AS part (low, high)
JOIN job ON job.trace_id >= part.low AND (job.trace_id < part.high OR part.high IS NULL)
WHERE job.updated_at < %(cutoff)s AND {ended}
