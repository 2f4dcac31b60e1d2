-- budgets_now: the budgets of today, the largest first; one row without a key where none was touched
SELECT day, key, spent, reserved
FROM to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day
LEFT JOIN budget ON key LIKE '%/' || day AND key NOT LIKE 'job/%'
ORDER BY spent + reserved DESC, key
LIMIT 100
