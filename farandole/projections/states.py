"""How each projection stands: live, being built, suspended; where it is defined, and how large its tables are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from farandole.postgres import Connection, dict_row, psycopg
from farandole.projections.folders import CORE, Projection
from farandole.projections.statements import SQL


@dataclass(frozen=True, slots=True)
class State:
    """One projection. `state` is a word of `states`."""

    name: str
    state: str
    live_since: datetime | None  #: the version that is live; None: none is
    folded: int | None  #: events, of a build under way
    expected: int | None  #: about as many in all
    error: str | None  #: what suspended it, or failed its build
    folder: str | None
    tables: dict[str, int]  #: bytes, indexes included


def states(connection: Connection[Any], found: Sequence[Projection]) -> list[State]:
    """All that have a folder or are known to the database, the core first.

    `new` and `changed`: a folder that no projector has seen yet, or whose views it could not replace (its log says why).
    `wanted`, `building`, `failed`: a version that is to become live; an older one may be live meanwhile. `suspended`: an
    event failed it; it stands still until it is refolded or changed. `live`; `kept`: live, though its folder is gone.
    """
    try:
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = {row["name"]: row for row in cursor.execute(SQL["states"]).fetchall()}
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.InvalidSchemaName):
        rows = {}  # before the first migration, or this one
    folders = {one.name: one for one in found}
    names = sorted({*rows, *folders}, key=lambda name: (name != CORE, name))
    return [_state(name, rows.get(name), folders.get(name)) for name in names]


def _state(name: str, row: dict[str, Any] | None, folder: Projection | None) -> State:
    where = None if folder is None else folder.where
    if row is None:
        return State(name, "new", None, None, None, None, where, {})
    if row["state"]:
        word, error = row["state"], row["build_error"]
    elif folder and (folder.hash, folder.views_hash) != (row["hash"], row["views_hash"]):
        word, error = "changed", row["error"]
    else:
        word, error = "suspended" if row["error"] else "live" if folder else "kept", row["error"]
    return State(
        name, word, row["folded_at"], row["folded"], row["expected"], error or row["error"], where, row["sizes"]
    )
