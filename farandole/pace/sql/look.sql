-- look: whether a model may be called now; reads only
WITH clock AS (
  SELECT extract(epoch FROM clock_timestamp())::float8 + %(offset)s AS now
)
SELECT now, extract(epoch FROM closed_until)::float8, level, reason, extract(epoch FROM reopened_at)::float8
FROM clock LEFT JOIN model_pace ON key = %(key)s AND model = %(model)s
