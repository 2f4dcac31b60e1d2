-- want: build this version, from the beginning unless it is under way or has failed already
INSERT INTO projection_build AS build (name, hash, tables, fold, views)
VALUES (%(name)s, %(hash)s, %(tables)s, %(fold)s, %(views)s)
ON CONFLICT (name) DO UPDATE
SET hash = excluded.hash, tables = excluded.tables, fold = excluded.fold, views = excluded.views, state = 'wanted',
    upto = NULL, reached = NULL, folded = 0, error = NULL, wanted_at = now(), moved_at = now()
WHERE %(anew)s OR (build.hash, build.views) IS DISTINCT FROM (excluded.hash, excluded.views)
