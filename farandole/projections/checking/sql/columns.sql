-- columns: of the tables that a projection has made in the sandbox, in their order
SELECT class.relname, attribute.attname, attribute.atttypid::regtype::text
FROM pg_class AS class
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum > 0 AND NOT attribute.attisdropped
WHERE class.relnamespace = %(schema)s::regnamespace AND class.relkind IN ('r', 'p') AND NOT class.relispartition
  AND class.relname <> ALL (%(others)s)
ORDER BY class.oid, attribute.attnum
