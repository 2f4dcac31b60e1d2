-- search_index: whether payloads are indexed for search, and the index can be used
SELECT coalesce(bool_or(indisvalid), false) AS usable, count(*) > 0 AS there
FROM pg_index
WHERE indexrelid = to_regclass(quote_ident(current_schema()) || '.event_log_search')
