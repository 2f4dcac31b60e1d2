-- projection_hashes: what each projection was last folded with
SELECT name, hash, suspended
FROM projection
ORDER BY name
