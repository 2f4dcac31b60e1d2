"""What `projections check` calls a deadlock is one: two connections fold crosswise, and Postgres ends one of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farandole import migrate, postgres
from farandole.postgres import Connection, psycopg
from farandole.projections.checking.sandbox import opened
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.checked_folds import faulty
from tests.integration.projection_tables import one

#: A fold that touches its second row waits until the test lets it.
HOLD = """
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('test.touched', true) = 'one' THEN PERFORM pg_advisory_xact_lock_shared(4711); END IF;
  PERFORM set_config('test.touched', 'one', true);
  RETURN NEW;
END $$;
CREATE TRIGGER hold BEFORE INSERT ON crosswise FOR EACH ROW EXECUTE FUNCTION hold();
"""
EVENT = """
INSERT INTO new_events (event_id, trace_id, type, emitted_by, run, hop, attempt, occurred_at, topic, partition, "offset",
                        logged_at, value, sanitised, content_hash)
SELECT gen_random_uuid(), gen_random_uuid(), type, 'a', 0, 0, 1, now() + place * interval '1 second', 't', 0, 0,
       now(), '', false, 0
FROM unnest(%s::text[]) WITH ORDINALITY AS given (type, place)
"""


@pytest.mark.parametrize(("order", "ended"), [("min(occurred_at), type", ["40P01"]), ("type", [])])
def test_two_folds_that_touch_rows_crosswise_wait_for_each_other_for_ever(
    order: str, ended: list[str], farandole_settings: Settings, tmp_path: Path
) -> None:
    """Case P5, for a user's projection: the order of the key is the way out."""
    migrate.migrate(farandole_settings)
    crosswise = faulty(tmp_path, "crosswise")
    projection = replace(crosswise, fold=crosswise.fold.replace("min(occurred_at), type", order))

    def folded(connection: Connection[Any], *types: str) -> list[str]:
        """The SQLSTATE it ended with, if it failed."""
        try:
            with connection.transaction():
                connection.execute(EVENT, (list(types),))
                connection.execute(postgres.script(projection.fold), prepare=False)
        except psycopg.Error as error:
            return [error.sqlstate or ""]
        return []

    with (
        opened(farandole_settings, projection, None) as sandbox,
        postgres.connect(farandole_settings) as test,
        ThreadPoolExecutor(2) as pool,
    ):
        sandbox.install()
        sandbox.connection.execute(postgres.script(HOLD), prepare=False)
        test.execute("SELECT pg_advisory_lock(4711)")
        both = sandbox.connections
        runs = [
            pool.submit(folded, connection, *types)
            for connection, types in zip(both, (("a", "b"), ("b", "a")), strict=True)
        ]
        pids = ", ".join(str(connection.info.backend_pid) for connection in both)
        waiting = f"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid IN ({pids})"
        eventually(lambda: one(test, waiting) == 2)
        test.execute("SELECT pg_advisory_unlock(4711)")
        assert [state for run in runs for state in run.result()] == ended
