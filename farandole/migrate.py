"""Brings the database to the version this code needs; safe to call at every start, by many at once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from farandole import postgres
from farandole.errors import ConfigurationError
from farandole.migrations import FOLDER
from farandole.postgres import Connection, psycopg, sql
from farandole.settings import Settings

if TYPE_CHECKING:
    from alembic.config import Config

log = logging.getLogger("farandole.migrate")


def versions() -> list[str]:
    """The versions this code knows, oldest first."""
    return sorted(file.stem.split("_")[0] for file in (FOLDER / "versions").glob("[0-9]*.py"))


def migrate(settings: Settings) -> list[str]:
    """Apply what is missing and return the versions applied. Creates the namespace's Postgres schema.

    Raises ConfigurationError when the database is newer than this code, Unreachable when it does not answer.
    """
    with postgres.connect(settings, application="farandole migrate") as connection:
        if not missing(connection, settings):
            return []  # the usual start: alembic, with its 25 MB, is not even imported
        with postgres.advisory_lock(connection, "migrate", settings.schema_name):
            applied = missing(connection, settings)
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(settings.schema_name)))
            if applied:
                _upgrade(settings)
                log.info("migrated schema=%s versions=%s", settings.schema_name, ",".join(applied))
            return applied


def check(settings: Settings) -> list[str]:
    """The versions that `migrate` would apply; [] when the database is ready. Changes nothing."""
    with postgres.connect(settings, application="farandole migrate") as connection:
        return missing(connection, settings)


def missing(connection: Connection[Any], settings: Settings) -> list[str]:
    """The versions the database lacks. Raises ConfigurationError when it is newer than this code."""
    table = sql.Identifier(settings.schema_name, "alembic_version")
    try:
        row = connection.execute(sql.SQL("SELECT version_num FROM {}").format(table)).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        row = None
    at, known = row[0] if row else "", versions()
    if at > known[-1]:
        raise ConfigurationError(
            f"the database is at version {at}, this farandole knows versions up to {known[-1]}: "
            f"upgrade farandole, or use another namespace (schema {settings.schema_name})"
        )
    return [version for version in known if version > at]


def _upgrade(settings: Settings) -> None:
    from alembic import command
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    def connect() -> Connection[Any]:
        return postgres.connect(settings, autocommit=False, application="farandole migrate")

    engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)
    with engine.connect() as connection:
        try:
            command.upgrade(_config(connection, settings.schema_name), "head")
        except psycopg.errors.RaiseException as refused:  # a migration's own word: what is in its way, and what to do
            raise ConfigurationError(f"{refused.diag.message_primary}. {refused.diag.message_hint}") from None
        connection.commit()


def _config(connection: Any, schema: str) -> Config:
    from alembic.config import Config

    config = Config(attributes={"connection": connection, "schema": schema})
    config.set_main_option("script_location", str(FOLDER))
    config.set_main_option("path_separator", "os")
    return config
