-- made: what a schema holds, indexes and what belongs to tables (their types, their sequences) apart
SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'S' THEN 'sequence' ELSE 'view' END, relname
FROM pg_class
WHERE relnamespace = %(schema)s::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
  AND NOT (relkind = 'S' AND EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype IN ('a', 'i')))
UNION ALL
SELECT 'function', proname FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
UNION ALL
SELECT 'type', typname
FROM pg_type
WHERE typnamespace = %(schema)s::regnamespace AND typtype IN ('e', 'd')
ORDER BY 1, 2
