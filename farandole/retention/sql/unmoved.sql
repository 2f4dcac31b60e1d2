-- unmoved: of locked jobs those of which no record came since, by Kafka's clock
SELECT one.trace_id
FROM unnest(%(jobs)s::uuid[]) AS one (trace_id)
WHERE NOT EXISTS (SELECT FROM event_log WHERE event_log.trace_id = one.trace_id AND event_log.logged_at >= %(cutoff)s)
