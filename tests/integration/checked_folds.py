"""Projections with one fault each, for the tests of `projections check`."""

from __future__ import annotations

from pathlib import Path

from farandole.projections import Projection

#: By name: tables.sql, fold.sql.
FAULTY: dict[str, tuple[str, str]] = {
    "last_stage": (
        "CREATE TABLE IF NOT EXISTS last_stage (trace_id uuid PRIMARY KEY, stage text);",
        """INSERT INTO last_stage
SELECT DISTINCT ON (trace_id) trace_id, stage FROM new_events ORDER BY trace_id, occurred_at DESC, event_id DESC
ON CONFLICT (trace_id) DO UPDATE SET stage = excluded.stage;""",
    ),
    "first_event": (
        "CREATE TABLE IF NOT EXISTS first_event (trace_id uuid PRIMARY KEY, type text);",
        """INSERT INTO first_event
SELECT DISTINCT ON (trace_id) trace_id, type FROM new_events ORDER BY trace_id, event_id
ON CONFLICT (trace_id) DO NOTHING;""",
    ),
    "ties": (
        "CREATE TABLE IF NOT EXISTS ties (trace_id uuid PRIMARY KEY, type text, at timestamptz);",
        """INSERT INTO ties AS old
SELECT DISTINCT ON (trace_id) trace_id, type, occurred_at FROM new_events ORDER BY trace_id, occurred_at DESC
ON CONFLICT (trace_id) DO UPDATE SET type = excluded.type, at = excluded.at WHERE excluded.at > old.at;""",
    ),
    "batches": (
        "CREATE TABLE IF NOT EXISTS batches (trace_id uuid PRIMARY KEY, n bigint);",
        """INSERT INTO batches AS old SELECT trace_id, 1 FROM new_events GROUP BY trace_id ORDER BY trace_id
ON CONFLICT (trace_id) DO UPDATE SET n = old.n + 1;""",
    ),
    "collected": (
        "CREATE TABLE IF NOT EXISTS collected (trace_id uuid PRIMARY KEY, types text[]);",
        """INSERT INTO collected AS old
SELECT trace_id, array_agg(type) FROM new_events GROUP BY trace_id ORDER BY trace_id
ON CONFLICT (trace_id) DO UPDATE SET types = array(SELECT unnest(old.types || excluded.types) ORDER BY 1);""",
    ),
    "seconds": (
        "CREATE TABLE IF NOT EXISTS seconds (one int PRIMARY KEY, total double precision);",
        """INSERT INTO seconds AS old
SELECT 1, sum(0.1::float8 * (1 + extract(second FROM occurred_at)) / (3 + hop)) FROM new_events HAVING count(*) > 0
ON CONFLICT (one) DO UPDATE SET total = old.total + excluded.total;""",
    ),
    "seen_at": (
        "CREATE TABLE IF NOT EXISTS seen_at (event_id uuid PRIMARY KEY, at timestamptz);",
        "INSERT INTO seen_at SELECT event_id, now() FROM new_events ORDER BY event_id;",
    ),
    "numbered": (
        "CREATE TABLE IF NOT EXISTS numbered (\n  id bigserial PRIMARY KEY, event_id uuid NOT NULL\n);",
        "INSERT INTO numbered (event_id) SELECT event_id FROM new_events;",
    ),
    "thrown": (
        "CREATE TABLE IF NOT EXISTS thrown (event_id uuid PRIMARY KEY);",
        "INSERT INTO thrown SELECT event_id FROM new_events WHERE random() < 0.5 ORDER BY event_id;",
    ),
    "crosswise": (
        "CREATE TABLE IF NOT EXISTS crosswise (type text PRIMARY KEY, n bigint);",
        """INSERT INTO crosswise AS old
SELECT type, count(*) FROM new_events GROUP BY type ORDER BY min(occurred_at), type
ON CONFLICT (type) DO UPDATE SET n = old.n + excluded.n;""",
    ),
    "misspelt": (
        "CREATE TABLE IF NOT EXISTS misspelt (type text PRIMARY KEY, n bigint);",
        "INSERT INTO misspelt\nSELECT type,\n  count(occured_at) FROM new_events GROUP BY type ORDER BY type;",
    ),
    "committing": (
        "CREATE TABLE IF NOT EXISTS committing (type text PRIMARY KEY);",
        """-- BEGIN is fine here; COMMIT too
INSERT INTO committing SELECT DISTINCT type || '; COMMIT' FROM new_events ORDER BY 1 ON CONFLICT DO NOTHING;
COMMIT;""",
    ),
    "meddling": (
        "CREATE TABLE IF NOT EXISTS meddling (type text PRIMARY KEY);",
        """INSERT INTO meddling SELECT DISTINCT type FROM new_events ORDER BY 1 ON CONFLICT DO NOTHING;
UPDATE projector_offset SET gap = 'mine'; DELETE FROM parked;""",
    ),
    "pairs": (
        "CREATE TABLE IF NOT EXISTS pairs (type text, cause text, n bigint, PRIMARY KEY (type, cause));",
        """INSERT INTO pairs AS old
SELECT effect.type, cause.type, count(*)
FROM new_events AS effect JOIN event_log AS cause ON cause.event_id = effect.causation_id
GROUP BY 1, 2 ORDER BY 1, 2
ON CONFLICT (type, cause) DO UPDATE SET n = old.n + excluded.n;""",
    ),
    "second_of_two": (
        "CREATE TABLE IF NOT EXISTS second_of_two (trace_id uuid PRIMARY KEY, pairs bigint);",
        """INSERT INTO second_of_two AS old
SELECT trace_id, count(*)
FROM new_events AS one JOIN event_log AS other USING (trace_id)
WHERE one.event_id < other.event_id OR NOT EXISTS (SELECT FROM new_events WHERE event_id = other.event_id)
GROUP BY trace_id ORDER BY trace_id
ON CONFLICT (trace_id) DO UPDATE SET pairs = old.pairs + excluded.pairs;""",
    ),
    "neighbours": (
        "CREATE TABLE IF NOT EXISTS neighbours (tenant text PRIMARY KEY, pairs bigint NOT NULL);",
        """INSERT INTO neighbours AS old
SELECT '', count(*)
FROM new_events AS one JOIN event_log AS other ON other.type = one.type AND other.trace_id <> one.trace_id
WHERE NOT EXISTS (SELECT FROM new_events WHERE event_id = other.event_id) OR one.event_id < other.event_id
HAVING count(*) > 0
ON CONFLICT (tenant) DO UPDATE SET pairs = old.pairs + excluded.pairs;""",
    ),
    "lost_update": (
        "CREATE TABLE IF NOT EXISTS lost_update (stage text PRIMARY KEY, n bigint);",
        """INSERT INTO lost_update AS old
SELECT stage, count(*) + coalesce((SELECT n FROM lost_update AS before WHERE before.stage = event.stage), 0)
FROM new_events AS event WHERE stage IS NOT NULL GROUP BY stage ORDER BY stage
ON CONFLICT (stage) DO UPDATE SET n = excluded.n;""",
    ),
    "counting": (
        "CREATE TABLE IF NOT EXISTS counting (one int PRIMARY KEY, n bigint);",
        """INSERT INTO counting AS old SELECT 1, count(*) FROM new_events
ON CONFLICT (one) DO UPDATE SET n = old.n + excluded.n;""",
    ),
    "keyless": (
        "CREATE TABLE IF NOT EXISTS keyless (type text, n bigint);",
        "INSERT INTO keyless AS old SELECT type, count(*) FROM new_events GROUP BY type ORDER BY type\n"
        "ON CONFLICT (type) DO UPDATE SET n = old.n + excluded.n;",
    ),
    "ungrouped": (
        "CREATE TABLE IF NOT EXISTS ungrouped (type text PRIMARY KEY, n bigint);",
        "INSERT INTO ungrouped AS old SELECT type, 1 FROM new_events ORDER BY type\n"
        "ON CONFLICT (type) DO UPDATE SET n = old.n + excluded.n;",
    ),
    "looking": (
        "CREATE TABLE IF NOT EXISTS looking (event_id uuid PRIMARY KEY, stage text);",
        "INSERT INTO looking SELECT event_id, (SELECT max(name) FROM step) FROM new_events ORDER BY event_id;",
    ),
}

#: Joins that are allowed: each row is gathered whole from the events of its job.
GATHERED = (
    "CREATE TABLE IF NOT EXISTS gathered (trace_id uuid PRIMARY KEY, pairs bigint);",
    """INSERT INTO gathered
SELECT effect.trace_id, count(*)
FROM event_log AS effect JOIN event_log AS cause ON cause.event_id = effect.causation_id
WHERE effect.trace_id IN (SELECT trace_id FROM new_events)
GROUP BY effect.trace_id ORDER BY effect.trace_id
ON CONFLICT (trace_id) DO UPDATE SET pairs = excluded.pairs;""",
)


def faulty(folder: Path, name: str) -> Projection:
    """The projection of this name, its files written to `folder`."""
    tables, fold = (FAULTY | {"gathered": GATHERED})[name]
    (folder / name).mkdir(parents=True)
    for file, text in (("tables.sql", tables), ("fold.sql", fold)):
        (folder / name / file).write_text(text)
    return Projection(name, folder / name, tables, fold)
