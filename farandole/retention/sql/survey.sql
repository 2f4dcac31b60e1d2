-- survey: by partition, the jobs (and events) that may be forgotten, the other jobs, and of these the ones that would be
-- forgotten if they had ended: how many, and five of them, those that stand still longest first
SELECT name, count(*) FILTER (WHERE due), coalesce(sum(events) FILTER (WHERE due), 0)::bigint,
       count(*) FILTER (WHERE NOT due), count(*) FILTER (WHERE old AND NOT ended),
       (array_agg(trace_id::text ORDER BY updated_at, trace_id) FILTER (WHERE old AND NOT ended))[:5]
FROM (
  SELECT *, old AND ended AND NOT (%(closely)s AND EXISTS (
           SELECT FROM event_log WHERE event_log.trace_id = found.trace_id AND event_log.logged_at >= %(cutoff)s)) AS due
  FROM (
    SELECT part.name, job.trace_id, job.events, job.updated_at, job.updated_at < %(cutoff)s AS old, ({ended}) IS TRUE AS ended
    FROM unnest(%(names)s::text[], %(lows)s::uuid[], %(highs)s::uuid[]) AS part (name, low, high)
    JOIN job ON job.trace_id >= part.low AND (job.trace_id < part.high OR part.high IS NULL)
  ) AS found
) AS looked
GROUP BY name
