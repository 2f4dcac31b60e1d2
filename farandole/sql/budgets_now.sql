-- budgets_now: the budgets that are not over: those of today, the largest first
SELECT key, spent, reserved
FROM budget
WHERE key LIKE '%/' || to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')
ORDER BY spent + reserved DESC, key
LIMIT 100
