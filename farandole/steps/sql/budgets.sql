-- budgets: see that the rows of budgets are there, for `begin` to lock; returns the day they are of
WITH made AS (
  INSERT INTO budget (key)
  SELECT CASE WHEN daily THEN key || '/' || to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD') ELSE key END
  FROM unnest(%s::text[], %s::boolean[]) AS given (key, daily)
  ORDER BY 1
  ON CONFLICT DO NOTHING
)
SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')
