-- listed_calls: the model calls of one effect, the first one first
SELECT call_id, at, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, micro_dollars, latency_ms,
       stop_reason, outcome, request_id
FROM usage
WHERE event_id = %(event_id)s AND agent = %(agent)s AND step = %(name)s AND trace_id = %(trace_id)s
ORDER BY at, call_id
