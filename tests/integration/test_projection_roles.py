"""Projections and roles of Postgres: views and rights of others, and a database whose owner may not do everything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from pydantic import SecretStr

from farandole import migrate, postgres, projections
from farandole.errors import ConfigurationError
from farandole.postgres import Connection
from farandole.project import Project
from farandole.projections import building
from farandole.projections.registered import want
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.projection_builds import DOUBLE, FOLD, build, database, project, seen
from tests.integration.projection_tables import Folder, one, places
from tests.journeys import Log, Submitted, new_fact, written

__all__ = ["database", "project"]  # fixtures


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
        records = written(Log(plain), [new_fact(Submitted)])
        Folder(plain, "live", places(records, plain)).fold(records)
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
