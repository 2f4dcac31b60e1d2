-- search_parts: the tables that hold event_log's rows, and of each its index for search: whether it belongs to the whole one,
-- and whether it can be used; null: there is none
SELECT part.relname AS name, index.relname AS index_name, made.indisvalid AS usable,
       index.relispartition OR NOT part.relispartition AS attached
FROM (
  SELECT relid FROM pg_partition_tree('event_log') WHERE isleaf
  UNION
  SELECT oid FROM pg_class WHERE oid = to_regclass('event_log') AND relkind = 'r'
) AS leaf
JOIN pg_class AS part ON part.oid = leaf.relid
LEFT JOIN LATERAL (
  SELECT indexrelid, indisvalid
  FROM pg_index
  WHERE indrelid = part.oid AND pg_get_indexdef(indexrelid) LIKE '%%USING gin (jsonb_to_tsvector(''simple''%%octet_length(value) <= 100000%%'
  ORDER BY (SELECT relispartition FROM pg_class WHERE oid = indexrelid) DESC
  LIMIT 1
) AS made ON true
LEFT JOIN pg_class AS index ON index.oid = made.indexrelid
ORDER BY part.relname DESC
