-- jobs_from: ids of the jobs between two ids; a range of the primary key
SELECT trace_id
FROM job
WHERE trace_id BETWEEN %(low)s::uuid AND %(high)s::uuid
ORDER BY trace_id
LIMIT %(limit)s
