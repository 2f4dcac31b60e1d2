-- dead_letters: the dead letters that fit every filter given, the oldest first
SELECT event_id, trace_id, run, hop, scope_id, part, parts, tenant, agent, cause, error, attempts, dead_letter_topic,
       origin_topic, origin_partition, origin_offset, logged_at, answer, reason, answered_at
FROM dead_letter
WHERE (%(answered)s OR answer IS NULL)
  AND (%(event_id)s::uuid IS NULL OR event_id = %(event_id)s)
  AND (%(trace_id)s::uuid IS NULL OR trace_id = %(trace_id)s)
  AND (%(agent)s::text IS NULL OR agent = %(agent)s)
  AND (%(cause)s::text IS NULL OR cause = %(cause)s)
  AND (%(older_than)s::timestamptz IS NULL OR logged_at < %(older_than)s)
  AND (%(newer_than)s::timestamptz IS NULL OR logged_at >= %(newer_than)s)
  AND event_id <> ALL (%(gone)s::uuid[])
ORDER BY logged_at, event_id
LIMIT %(limit)s
