-- go_live: a build becomes what every projector folds
INSERT INTO projection (name, hash, views_hash, tables, fold, views)
VALUES (%(name)s, %(hash)s, %(views_hash)s, %(tables)s, %(fold)s, %(views)s)
ON CONFLICT (name) DO UPDATE
SET hash = excluded.hash, views_hash = excluded.views_hash, tables = excluded.tables, fold = excluded.fold,
    views = excluded.views, error = NULL, folded_at = now()
