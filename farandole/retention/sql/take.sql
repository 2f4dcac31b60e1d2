-- take: the next of the due jobs
SELECT trace_id FROM due WHERE trace_id > %(after)s ORDER BY trace_id LIMIT %(many)s
