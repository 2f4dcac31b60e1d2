-- insert_conflicts: the same event id with another payload; the first stays, the others are counted
INSERT INTO conflict (topic, partition, "offset", event_id, trace_id, content_hash)
SELECT again.topic, again.partition, again."offset", event_id, again.trace_id, again.content_hash
FROM incoming AS again JOIN event_log AS first USING (event_id)
WHERE again.content_hash <> first.content_hash
ORDER BY again.topic, again.partition, again."offset"
ON CONFLICT DO NOTHING
