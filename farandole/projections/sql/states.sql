-- states: what is live and what is built of each projection; its tables are those that its SQL makes
SELECT name, live.hash, live.views_hash, live.error, live.folded_at, build.state, build.folded, build.expected, build.error AS build_error,
       (SELECT coalesce(jsonb_object_agg(made[1], pg_total_relation_size(to_regclass(quote_ident(made[1])))), '{}')
        FROM regexp_matches(live.tables, 'CREATE\s+TABLE\s+IF\s+NOT\s+EXISTS\s+(\w+)', 'gi') AS made
        WHERE to_regclass(quote_ident(made[1])) IS NOT NULL) AS sizes
FROM projection AS live
FULL JOIN projection_build AS build USING (name)
