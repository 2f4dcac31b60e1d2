-- taken: tables of these names that are not the live version's of this projection
SELECT relname
FROM pg_class
WHERE relnamespace = %(schema)s::regnamespace AND relname = ANY (%(tables)s)
  AND NOT EXISTS (SELECT FROM projection WHERE name = %(name)s
                  AND (tables IS NULL OR tables ~* ('CREATE\s+TABLE\s+IF\s+NOT\s+EXISTS\s+' || relname || '\M')))
