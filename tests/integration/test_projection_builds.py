"""Projections built beside the live ones: under traffic, after kills, with readers in between, with mistakes in them."""

# ruff: noqa: F811  fixtures that tests of builds share

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from farandole import postgres, projections
from farandole.errors import ConfigurationError
from farandole.postgres import Connection
from farandole.project import Project
from farandole.projections import beside, building
from farandole.projections.registered import builds, want
from farandole.projector import folds
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.projection_builds import (  # noqa: F401
    DOUBLE,
    FOLD,
    STAGES,
    TABLES,
    batches,
    build,
    database,
    project,
    seen,
    state,
    wanted,
)  # fmt: skip
from tests.integration.projection_tables import one


class Cut(Exception):
    """The builder's process is gone."""


@pytest.mark.usefixtures("farandole_settings")
def test_events_that_come_while_it_is_built_are_in_it_once(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(building, "CHUNK", 50)
    batches(), batches(), batches(), batches()
    seen(project, DOUBLE)
    wanted(farandole_settings, project)
    said = []

    def meanwhile(_: str, what: str) -> None:
        said.append(what)
        batches()
        live = one(database, "SELECT sum(n) FROM seen")
        assert live == (2 if what == "is live" else 1) * one(database, STAGES), "the old version goes on until then"

    build(farandole_settings, meanwhile)
    assert said[0] == "building" and said[-1] == "is live" and len(said) > 4
    while batches():
        pass
    assert one(database, "SELECT sum(n) FROM seen") == 2 * one(database, STAGES)
    assert one(database, "SELECT count(*) FROM projection_backlog") == 0


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_builder_that_is_killed_is_followed_by_one_that_takes_the_build_up(
    after: int, project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(building, "CHUNK", 60)
    while batches():
        pass
    seen(project, DOUBLE)
    wanted(farandole_settings, project)
    calls = 0

    def cut(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            raise Cut

    with pytest.raises(Cut):
        build(farandole_settings, cut)
    (left,) = builds(database)
    assert (left.state, left.folded) == ("building", 60 * after)
    said: list[str] = []
    build(farandole_settings, lambda _, what: said.append(what))
    assert "building" not in said, "it is not begun anew"
    assert one(database, "SELECT sum(n) FROM seen") == 2 * one(database, STAGES)


@pytest.mark.parametrize(
    ("tables", "fold", "why"),
    [
        (TABLES, FOLD.replace("count(*)", "count(*),\n nonsense"), r'seen/fold\.sql:3: column "nonsense" does not exist'),
        (TABLES, FOLD + "COMMIT;", r"seen/fold\.sql: it ends the transaction it runs in; leave BEGIN, COMMIT"),
        (TABLES, FOLD.replace("count(*)", "1 / (count(*) - count(*))"), r"seen/fold\.sql: division by zero"),
        (TABLES + "CREATE VIEW more AS SELECT 1;", FOLD, r"expected only tables .* it makes view more, seen"),
        (TABLES.replace("seen (", "seen_too (") , FOLD, r"seen/fold\.sql: it writes to seen, which is not made"),
        (TABLES.replace("seen", "parked"), FOLD.replace("seen", "parked"), r"the table parked is there and is not this"),
        (TABLES.replace("seen", "piece"), FOLD.replace("seen", "piece"), r"the table piece is there and is not this"),
        (TABLES.replace("n bigint", "n bigint CHECK (n < 3)"), FOLD, r"seen/fold\.sql: new row .* violates check"),
    ],
)  # fmt: skip
def test_a_version_that_is_wrong_fails_with_its_place_and_the_old_one_goes_on(
    tables: str, fold: str, why: str, project: Project, database: Connection[Any], batches: Callable[[], int],
    farandole_settings: Settings,
) -> None:  # fmt: skip
    batches()
    seen(project, fold, tables)
    with pytest.raises(ConfigurationError, match=why):
        projections.install(farandole_settings, projections.discover(project))
    assert state(database, project)[0] == "failed"
    batches()
    assert one(database, "SELECT sum(n) FROM seen") == one(database, STAGES)
    assert one(database, "SELECT to_regnamespace(current_schema() || '__build')") is None
    seen(project, DOUBLE)
    projections.install(farandole_settings, projections.discover(project))
    assert (state(database, project), one(database, "SELECT sum(n) FROM seen")) == (
        ("live", None), 2 * one(database, STAGES),
    )  # fmt: skip


def test_views_and_rights_of_others_outlive_the_tables_they_hang_on(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings
) -> None:
    batches()
    role = f"{farandole_settings.schema_name}_reads"
    database.execute(postgres.script(f"CREATE ROLE {role}; GRANT SELECT ON seen TO {role}"))
    database.execute("CREATE VIEW by_hand AS SELECT sum(n) AS all_of_them FROM seen")
    database.execute("CREATE VIEW second AS SELECT all_of_them + 1 AS more FROM by_hand")
    database.execute(postgres.script(f"GRANT SELECT ON second TO {role}"))
    try:
        seen(project, DOUBLE)
        projections.install(farandole_settings, projections.discover(project))
        assert one(database, "SELECT more FROM second") == 2 * one(database, STAGES) + 1
        for relation in ("seen", "second"):
            assert one(database, f"SELECT has_table_privilege('{role}', '{relation}', 'SELECT')")
        renamed = FOLD.replace("n = old.n + excluded.n", "times = old.times + excluded.times")
        seen(project, renamed, TABLES.replace("n bigint", "times bigint"))
        with pytest.raises(ConfigurationError, match=r"the view \w+\.by_hand, which no projection's views\.sql makes"):
            projections.install(farandole_settings, projections.discover(project))
        assert one(database, "SELECT more FROM second") == 2 * one(database, STAGES) + 1, "all is as it was"
    finally:
        database.execute(postgres.script(f"DROP OWNED BY {role}; DROP ROLE {role}"))


def test_a_projection_whose_folder_is_gone_is_kept_and_folded_until_it_is_dropped(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings
) -> None:
    batches()
    with pytest.raises(ConfigurationError, match="seen would come again with the next projector: remove its folder"):
        projections.drop(farandole_settings, projections.discover(project), "seen")
    for file in (project.projections / "seen").iterdir():
        file.unlink()
    (project.projections / "seen").rmdir()
    found = projections.discover(project)
    projections.install(farandole_settings, found)
    batches()
    assert one(database, "SELECT sum(n) FROM seen") == one(database, STAGES)
    assert state(database, project) == ("kept", None)
    for name, why in {"job_state": "it stays", "nothing": "no projection 'nothing'"}.items():
        with pytest.raises(ConfigurationError, match=why):
            projections.drop(farandole_settings, found, name)
    database.execute("CREATE VIEW by_hand AS SELECT sum(n) FROM seen")
    with pytest.raises(ConfigurationError, match=r"seen is used by others: view by_hand depends on table seen"):
        projections.drop(farandole_settings, found, "seen")
    database.execute("DROP VIEW by_hand")
    projections.drop(farandole_settings, found, "seen")
    assert one(database, "SELECT to_regclass('seen')") is None
    batches()


def test_a_folder_that_goes_back_takes_the_build_back(
    project: Project, database: Connection[Any], farandole_settings: Settings
) -> None:
    seen(project, DOUBLE)
    wanted(farandole_settings, project)
    assert state(database, project)[0] == "wanted"
    seen(project, FOLD)
    wanted(farandole_settings, project)
    assert (state(database, project), builds(database)) == (("live", None), [])


def test_to_readers_that_began_before_the_new_tables_are_never_empty(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Its snapshot does not see what the builder has written since: it would find the new table without rows."""
    batches()
    monkeypatch.setattr(building, "AGAIN", 0.01)
    said: list[str] = []
    with postgres.connect(farandole_settings) as reader:
        with reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            expected = one(reader, STAGES)
            with postgres.connect(farandole_settings) as other:
                want(other, projections.discover(project)[1], anew=True)
            builder = threading.Thread(target=build, args=(farandole_settings, lambda _, what: said.append(what)))
            builder.start()
            eventually(lambda: any(what.startswith("waits for a reader: process") for what in said))
            assert one(reader, "SELECT sum(n) FROM seen") == expected
        builder.join(30)
    assert said[-1] == "is live"


def test_a_reader_that_holds_the_old_tables_holds_nobody_else(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    batches()
    monkeypatch.setattr(building, "AGAIN", 0.01)
    monkeypatch.setattr(beside, "HELD", 50)
    said: list[str] = []
    with postgres.connect(farandole_settings) as reader:
        with reader.transaction():
            reader.execute("SELECT * FROM seen")
            want(database, projections.discover(project)[1], anew=True)
            builder = threading.Thread(target=build, args=(farandole_settings, lambda _, what: said.append(what)))
            builder.start()
            eventually(lambda: said.count("waits for a reader of its tables") > 1)
            assert batches() > 0, "projectors go on"
        builder.join(30)
    assert said[-1] == "is live"
    assert one(database, "SELECT sum(n) FROM seen") == one(database, STAGES)


def test_a_fold_that_takes_too_long_is_suspended_and_refolded_once_it_is_mended(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(folds, "SLOWEST", "50ms")
    seen(project, FOLD + "SELECT pg_sleep(1) FROM new_events LIMIT 1;")
    projections.install(farandole_settings, projections.discover(project))
    batches()
    assert state(database, project) == ("suspended", "it took longer than 50ms")
    batches()
    assert one(database, "SELECT count(*) FROM seen") == 0
    assert one(database, "SELECT sum(events) FROM job") == one(database, "SELECT count(*) FROM event_log")
    seen(project, FOLD)
    projections.install(farandole_settings, projections.discover(project))
    assert one(database, "SELECT sum(n) FROM seen") == one(database, STAGES)
