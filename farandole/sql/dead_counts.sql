-- dead_counts: how many dead letters fit every filter given, by agent and cause
SELECT agent, cause, count(*) AS letters, min(logged_at) AS oldest, max(logged_at) AS newest
FROM dead_letter
WHERE (%(answered)s OR answer IS NULL)
  AND (%(event_id)s::uuid IS NULL OR event_id = %(event_id)s)
  AND (%(trace_id)s::uuid IS NULL OR trace_id = %(trace_id)s)
  AND (%(agent)s::text IS NULL OR agent = %(agent)s)
  AND (%(cause)s::text IS NULL OR cause = %(cause)s)
  AND (%(older_than)s::timestamptz IS NULL OR logged_at < %(older_than)s)
  AND (%(newer_than)s::timestamptz IS NULL OR logged_at >= %(newer_than)s)
  AND event_id <> ALL (%(gone)s::uuid[])
GROUP BY agent, cause
ORDER BY agent, cause
