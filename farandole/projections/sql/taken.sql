-- taken: tables of these names that are there
SELECT relname
FROM pg_class
WHERE relnamespace = %(schema)s::regnamespace AND relname = ANY (%(tables)s)
ORDER BY relname
