-- go_live: a version becomes what every projector folds. Only one that was built lacks nothing: other views do not revive
-- what an error has suspended
INSERT INTO projection AS live (name, hash, views_hash, tables, fold, views)
VALUES (%(name)s, %(hash)s, %(views_hash)s, %(tables)s, %(fold)s, %(views)s)
ON CONFLICT (name) DO UPDATE
SET hash = excluded.hash, views_hash = excluded.views_hash, tables = excluded.tables, fold = excluded.fold,
    views = excluded.views, error = CASE WHEN %(built)s THEN NULL ELSE live.error END,
    folded_at = CASE WHEN %(built)s THEN now() ELSE live.folded_at END
