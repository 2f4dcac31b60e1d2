-- example_today: what people read; made anew when this file changes, without building the tables. It may be left out.
CREATE OR REPLACE VIEW example_today AS
SELECT type, events, date_trunc('second', now() - last_at) AS quiet
FROM example
WHERE day = (now() AT TIME ZONE 'UTC')::date
ORDER BY events DESC, type;
