-- park: set a record aside, raw, that cannot be folded
INSERT INTO parked (topic, partition, "offset", timestamp_ms, key, value, headers, trace_id, cause, error)
VALUES (%(topic)s, %(partition)s, %(offset)s, %(timestamp_ms)s, %(key)s, %(value)s, %(headers)s, %(trace_id)s, %(cause)s, %(error)s)
ON CONFLICT DO NOTHING
