-- dependents: the views that hang on these relations, directly or through others; each after those it hangs on
WITH RECURSIVE hanging AS (
  SELECT unnest(%(relations)s::regclass[])::oid AS oid, 0 AS depth
  UNION
  SELECT rule.ev_class, depth + 1
  FROM hanging
  JOIN pg_depend AS link ON link.refclassid = 'pg_class'::regclass AND link.refobjid = hanging.oid
                        AND link.classid = 'pg_rewrite'::regclass
  JOIN pg_rewrite AS rule ON rule.oid = link.objid AND rule.ev_class <> hanging.oid
)
SELECT space.nspname AS schema, view.relname AS name, pg_get_viewdef(view.oid) AS definition,
       array_to_string(view.reloptions, ', ') AS options, max(depth) AS depth,
       pg_get_userbyid(view.relowner) AS owner, obj_description(view.oid, 'pg_class') AS comment
FROM hanging
JOIN pg_class AS view ON view.oid = hanging.oid AND view.relkind = 'v'
JOIN pg_namespace AS space ON space.oid = view.relnamespace
WHERE depth > 0
GROUP BY view.oid, space.nspname, view.relname, view.reloptions, view.relowner
ORDER BY depth, schema, name
