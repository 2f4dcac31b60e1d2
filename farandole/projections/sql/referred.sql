-- referred: tables outside of a schema that foreign keys inside of it point to
SELECT conrelid::regclass::text, confrelid::regclass::text
FROM pg_constraint
JOIN pg_class AS made ON made.oid = conrelid AND made.relnamespace = %(schema)s::regnamespace
JOIN pg_class AS other ON other.oid = confrelid AND other.relnamespace <> made.relnamespace
WHERE contype = 'f'
ORDER BY 1, 2
