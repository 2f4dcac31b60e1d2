-- keys: the columns that tell a table's rows apart: of its primary key, else of a unique index without a condition
SELECT DISTINCT ON (class.relname) class.relname,
       array(SELECT attname::text FROM pg_attribute
             WHERE attrelid = class.oid AND attnum = ANY (index.indkey::int2[]) ORDER BY array_position(index.indkey::int2[], attnum))
FROM pg_class AS class
JOIN pg_index AS index ON index.indrelid = class.oid AND index.indisunique AND index.indpred IS NULL AND index.indexprs IS NULL
WHERE class.relnamespace = %(schema)s::regnamespace
ORDER BY class.relname, index.indisprimary DESC, index.indexrelid
