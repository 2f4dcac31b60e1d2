-- reader_columns: the columns of tables that are open but for some
SELECT relname AS table, attname AS column
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%(tables)s) AND attnum > 0 AND NOT attisdropped
ORDER BY relname, attnum
