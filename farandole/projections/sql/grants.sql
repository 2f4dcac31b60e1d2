-- grants: what others than the owner may do with these relations, or with single columns of them
SELECT space.nspname AS schema, relation.relname AS name, given.column, coalesce(role.rolname, 'public') AS role,
       grants.grantee = 0 AS everybody, grants.privilege_type AS privilege, grants.is_grantable
FROM pg_class AS relation
JOIN pg_namespace AS space ON space.oid = relation.relnamespace
CROSS JOIN LATERAL (
  SELECT NULL::name AS column, relation.relacl AS acl
  UNION ALL
  SELECT attname, attacl FROM pg_attribute WHERE attrelid = relation.oid AND attacl IS NOT NULL
) AS given
CROSS JOIN LATERAL aclexplode(given.acl) AS grants
LEFT JOIN pg_roles AS role ON role.oid = grants.grantee
WHERE relation.oid = ANY (%(relations)s::regclass[]::oid[]) AND grants.grantee <> relation.relowner
ORDER BY 1, 2, 3 NULLS FIRST, 4, 6
