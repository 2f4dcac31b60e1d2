"""The versions of the database, as plain SQL; alembic keeps the order."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def run_sql(name: str) -> None:
    """Run a script of `sql/` on the connection of the running migration, as it stands."""
    from alembic import op

    from farandole.postgres import script

    connection = op.get_bind().connection.driver_connection
    if connection is None:
        raise RuntimeError("a migration runs on a connection; alembic's offline mode has none")
    connection.execute(script((FOLDER / "sql" / name).read_text(encoding="utf-8")), prepare=False)
