-- grants: what others than the owner may do with these relations
SELECT space.nspname AS schema, relation.relname AS name, coalesce(role.rolname, 'public') AS role,
       grants.grantee = 0 AS everybody, grants.privilege_type AS privilege, grants.is_grantable
FROM pg_class AS relation
JOIN pg_namespace AS space ON space.oid = relation.relnamespace
CROSS JOIN LATERAL aclexplode(relation.relacl) AS grants
LEFT JOIN pg_roles AS role ON role.oid = grants.grantee
WHERE relation.oid = ANY (%(relations)s::regclass[]::oid[]) AND grants.grantee <> relation.relowner
ORDER BY 1, 2, 3, 5
