"""Projections beside what is not theirs: tables of other schemas, of other projections, and a build that is wanted anew."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from pydantic import SecretStr

from farandole import migrate, postgres, projections
from farandole.errors import ConfigurationError, FarandoleError
from farandole.postgres import Connection
from farandole.project import Project
from farandole.projections import beside, building, installing, registered
from farandole.projections.registered import want
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.projection_tables import one
from tests.integration.test_projection_builds import (
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
)

__all__ = ["batches", "database", "project"]  # fixtures


def test_a_build_that_is_wanted_anew_meanwhile_is_begun_anew(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Two people refold at once, or one changes views.sql: what was folded until then is not all."""
    monkeypatch.setattr(building, "CHUNK", 50)
    while batches():
        pass
    seen(project, DOUBLE)
    wanted(farandole_settings, project)
    said: list[str] = []

    def meanwhile(_: str, what: str) -> None:
        said.append(what)
        if len(said) == 3:
            want(database, projections.discover(project)[1], anew=True)

    build(farandole_settings, meanwhile)
    assert (said.count("building"), said[-1]) == (2, "is live")
    assert one(database, "SELECT sum(n) FROM seen") == 2 * one(database, STAGES)


def test_a_table_or_view_of_the_same_name_in_public_is_left_alone(
    project: Project, database: Connection[Any], farandole_settings: Settings
) -> None:
    name = f"{farandole_settings.schema_name}_bought"
    database.execute(
        postgres.script(f"CREATE TABLE public.{name} (n int); CREATE VIEW public.{name}_v AS SELECT 1 AS n")
    )
    try:
        tables, fold = TABLES.replace("seen", name), FOLD.replace("seen", name)
        seen(project, fold, tables, f"CREATE VIEW {name}_v AS SELECT count(*) AS n FROM {name};", name="bought")
        projections.install(farandole_settings, projections.discover(project))
        assert one(database, f"SELECT count(*) FROM public.{name}") == 0
        assert one(database, f"SELECT n FROM public.{name}_v") == 1
        rmtree(project.projections / "bought")
        projections.drop(farandole_settings, projections.discover(project), "bought")
        assert one(database, f"SELECT count(*) FROM public.{name}") == 0
        assert one(database, f"SELECT n FROM public.{name}_v") == 1
        assert one(database, f"SELECT to_regclass('{name}')::text") == f"{name}", "of public alone"
    finally:
        database.execute(postgres.script(f"DROP VIEW public.{name}_v; DROP TABLE public.{name}"))


def test_dropping_a_version_that_never_was_live_drops_nothing_of_others(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings
) -> None:
    """A folder copied without renaming its tables fails; its removal must not take the other's tables along."""
    batches()
    seen(project, DOUBLE, name="seen_again")
    with pytest.raises(ConfigurationError, match="the table seen is there and is not this projection's"):
        projections.install(farandole_settings, projections.discover(project))
    rmtree(project.projections / "seen_again")
    projections.drop(farandole_settings, projections.discover(project), "seen_again")
    assert one(database, "SELECT sum(n) FROM seen") == one(database, STAGES)
    assert state(database, project) == ("live", None)


VIEW = "CREATE VIEW seen_v AS SELECT sum(n) AS n FROM seen;"


def test_views_that_somebody_reads_in_a_long_transaction_hold_up_no_other_reader(
    project: Project, database: Connection[Any], farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered, "TRIES", 2)
    monkeypatch.setattr(beside, "HELD", 50)
    seen(project, FOLD, views=VIEW)
    projections.install(farandole_settings, projections.discover(project))
    seen(project, FOLD, views=VIEW.replace("sum(n)", "count(*)"))
    with postgres.connect(farandole_settings) as reader, reader.transaction():
        reader.execute("SELECT n FROM seen_v")
        (problem,) = wanted(farandole_settings, project)
        assert problem.endswith("views.sql: somebody has them open in a transaction; the next start tries again")
    assert wanted(farandole_settings, project) == []
    assert one(database, "SELECT n FROM seen_v") == 0


def test_a_projection_that_somebody_reads_is_not_dropped_and_no_projector_waits_for_it(
    project: Project, database: Connection[Any], farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "TRIES", 2)
    monkeypatch.setattr(beside, "HELD", 50)
    rmtree(project.projections / "seen")
    found = projections.discover(project)
    with postgres.connect(farandole_settings) as reader, reader.transaction():
        reader.execute("SELECT * FROM seen")
        with pytest.raises(FarandoleError, match="somebody reads the tables of seen in a transaction that is open"):
            projections.drop(farandole_settings, found, "seen")
    projections.drop(farandole_settings, found, "seen")
    assert one(database, "SELECT to_regclass('seen')") is None


@pytest.mark.parametrize(
    ("made", "name"),
    [
        ("CREATE VIEW Seen_V AS SELECT 1 AS n;", "seen_v"),
        ('CREATE VIEW "seen v" AS SELECT 1 AS n;', "seen v"),
        ("CREATE MATERIALIZED VIEW seen_v AS SELECT 1 AS n;", "seen_v"),
        ("CREATE TABLE seen_t (n int);", "seen_t"),
    ],
)
def test_what_could_not_be_replaced_the_next_time_is_refused_in_views(
    made: str, name: str, project: Project, database: Connection[Any], farandole_settings: Settings
) -> None:
    seen(project, FOLD, views=made)
    with pytest.raises(ConfigurationError, match=rf"seen/views\.sql: expected only CREATE VIEW name.* it makes {name}"):
        projections.install(farandole_settings, projections.discover(project))
    seen(project, DOUBLE, views=VIEW)
    projections.install(farandole_settings, projections.discover(project))
    assert state(database, project) == ("live", None)


def test_a_foreign_key_to_a_table_of_others_is_refused(project: Project, farandole_settings: Settings) -> None:
    """It would keep the other table from being built anew, and jobs from being forgotten."""
    seen(project, FOLD, TABLES.replace("n bigint", "n bigint, job uuid REFERENCES job"))
    with pytest.raises(ConfigurationError, match=r"seen/tables\.sql: \S+ has a foreign key to job"):
        projections.install(farandole_settings, projections.discover(project))


def test_a_table_that_ends_with_a_letter_beyond_ascii_is_replaced(
    project: Project, database: Connection[Any], farandole_settings: Settings
) -> None:
    for fold in (FOLD, DOUBLE):
        seen(project, fold.replace("seen", "gesehené"), TABLES.replace("seen", "gesehené"))
        projections.install(farandole_settings, projections.discover(project))
    assert state(database, project) == ("live", None)


def test_the_views_of_another_role_stay_its_own_and_rights_on_columns_stay(
    project: Project, database: Connection[Any], farandole_settings: Settings
) -> None:
    here, role = farandole_settings.schema_name, f"{farandole_settings.schema_name}_reads"
    database.execute(
        postgres.script(
            f"CREATE ROLE {role}; CREATE SCHEMA {role} AUTHORIZATION {role}; GRANT USAGE ON SCHEMA {here} TO {role};"
            f" GRANT SELECT (n) ON seen TO {role};"
            f" SET ROLE {role}; CREATE VIEW {role}.total AS SELECT sum(n) AS n FROM {here}.seen;"
            f" COMMENT ON VIEW {role}.total IS 'all of them'; RESET ROLE"
        )
    )
    try:
        seen(project, DOUBLE)
        projections.install(farandole_settings, projections.discover(project))
        assert (
            one(database, f"SELECT relowner::regrole::text FROM pg_class WHERE oid = '{role}.total'::regclass") == role
        )
        assert one(database, f"SELECT obj_description('{role}.total'::regclass, 'pg_class')") == "all of them"
        assert one(database, f"SELECT has_column_privilege('{role}', 'seen', 'n', 'SELECT')")
        assert not one(database, f"SELECT has_column_privilege('{role}', 'seen', 'stage', 'SELECT')")
    finally:
        database.execute(postgres.script(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}"))


@pytest.fixture
def plain(farandole_settings: Settings) -> Iterator[Settings]:
    """A database whose owner is no superuser, as in most places."""
    role = f"{farandole_settings.schema_name}_plain"
    parts = urlsplit(farandole_settings.database)
    with postgres.connect(farandole_settings) as administrator:
        for name in (role, f"{role}_reads"):
            administrator.execute(postgres.script(f"CREATE ROLE {name} LOGIN PASSWORD 'x'"))
        administrator.execute(postgres.script(f"CREATE DATABASE {role} OWNER {role}"))
        try:
            url = urlunsplit(parts._replace(netloc=f"{role}:x@{parts.netloc.rpartition('@')[2]}", path=f"/{role}"))
            yield farandole_settings.model_copy(update={"database_url": SecretStr(url)})
        finally:
            administrator.execute(postgres.script(f"DROP DATABASE {role} WITH (FORCE)"))
            administrator.execute(postgres.script(f"DROP ROLE {role}; DROP ROLE {role}_reads"))


def test_a_plain_role_waits_for_readers_of_other_roles_and_is_told_what_it_may_not(
    plain: Settings, farandole_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain role is not shown since when the transactions of others are open."""
    monkeypatch.setattr(building, "AGAIN", 0.01)
    migrate.migrate(plain)
    made, schema = Project(tmp_path, {}), plain.schema_name
    seen(made, FOLD)
    projections.install(plain, projections.discover(made))
    role, url = urlsplit(plain.database).path[1:], plain.database
    reads = plain.model_copy(update={"database_url": SecretStr(url.replace(f"{role}:x@", f"{role}_reads:x@"))})
    said: list[str] = []
    with postgres.connect(plain) as database, postgres.connect(reads) as reader:
        database.execute("INSERT INTO seen VALUES ('there', 1)")
        database.execute(
            postgres.script(
                f"GRANT USAGE ON SCHEMA {schema} TO {role}_reads; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}_reads"
            )
        )
        with reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM event_log")
            want(database, projections.discover(made)[1], anew=True)
            builder = threading.Thread(target=build, args=(plain, lambda _, what: said.append(what)))
            builder.start()
            eventually(lambda: any(what.endswith("in a transaction of another role") for what in said))
            assert one(reader, "SELECT sum(n) FROM seen") == 1
        builder.join(30)
    assert said[-1] == "is live"
    with postgres.connect(farandole_settings) as administrator:
        administrator.execute(
            postgres.script(f"ALTER DATABASE {role} OWNER TO current_user; REVOKE ALL ON DATABASE {role} FROM {role}")
        )
    seen(made, DOUBLE)
    with pytest.raises(ConfigurationError, match=r"the database's user may not create it: GRANT CREATE ON DATABASE"):
        projections.install(plain, projections.discover(made))
