-- open_to_readers: who may read, by default, the tables that this schema's owner makes here
SELECT DISTINCT grants.grantee::regrole::text AS role
FROM pg_default_acl AS given CROSS JOIN LATERAL aclexplode(defaclacl) AS grants
WHERE defaclnamespace = current_schema()::regnamespace AND defaclobjtype = 'r' AND defaclrole = current_user::regrole
  AND privilege_type = 'SELECT' AND grantee NOT IN (0, current_user::regrole)
ORDER BY role
