-- latest: events of the jobs that were heard of last, by the ids' time; not more than `events` of them
WITH recent AS MATERIALIZED (
  SELECT trace_id, row_number() OVER (ORDER BY event_id DESC) AS place FROM {log} ORDER BY event_id DESC LIMIT 50 * %(jobs)s
), job AS (
  SELECT trace_id FROM recent GROUP BY trace_id ORDER BY min(place) LIMIT %(jobs)s
)
INSERT INTO farandole_sample
SELECT log.* FROM {log} AS log JOIN job USING (trace_id)
ORDER BY log.event_id DESC
LIMIT %(events)s
ON CONFLICT DO NOTHING
