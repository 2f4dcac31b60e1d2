-- reader_state: what is known of a role that is to read, and of who asks
SELECT current_user AS owner, current_database() AS database, quote_ident(current_schema()) AS schema,
       role.oid IS NOT NULL AS there,
       coalesce(role.rolsuper OR role.rolname IN (current_user, session_user)
                OR pg_has_role(role.oid, (SELECT nspowner FROM pg_namespace WHERE nspname = current_schema()), 'MEMBER'), false)
         AS owns,
       has_database_privilege('public', current_database(), 'CONNECT') AS everybody_connects
FROM (SELECT %(name)s::text AS name) AS wanted
LEFT JOIN pg_roles AS role ON role.rolname = wanted.name
