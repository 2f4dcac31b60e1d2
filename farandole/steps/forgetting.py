"""Steps that a person wants to run anew, dropped before their dead letters are given back.

The order is: **A** one transaction in Postgres drops the named steps of a batch of letters, **B** the Kafka transaction gives
these letters back. While a letter is open nobody handles its event, so what A drops is in nobody's hands; a step that is,
of an attempt that was given up and goes on in its thread, has a live lease, and its letter is left.

| killed, or raced | left behind | then |
|---|---|---|
| before A, or in it | steps and letters as they were | run the command again |
| between A and B, or B is refused | the steps are forgotten, the letters open | nobody runs them. Run the command again: a step that is forgotten stays as it is (its key changes once), and the letters are given back |
| B's outcome is lost | the letters are given back, with their steps forgotten; or as between A and B | the next command learns which (its `init_transactions` ends B). Letters that were given back are not open: their steps, which may have run anew, are not dropped again |
| the connection breaks before A | the lock of the command is another's, perhaps | A needs that connection: this command ends and has dropped nothing |
| the connection breaks after A, and another command gives the same letters back | its B, or ours | the broker takes one of them; the steps are forgotten either way |
| a redrive without `--forget` follows one that was killed between A and B | the letters are given back | the steps run anew, as the first command was told |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from farandole.errors import ExitCode, FarandoleError
from farandole.postgres import Connection, dict_row

_SQL = {
    name: (Path(__file__).parent / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    for name in ("of_letters", "forget", "book_unknown")
}

#: Names of steps that an error lists.
_NAMED = 20


@dataclass(frozen=True, slots=True)
class Behind:
    """A step behind a dead letter."""

    letter: UUID  #: the event that tells of the letter
    event_id: UUID
    agent: str
    name: str
    seconds: float | None  #: somebody is at it, for so long; None: nobody is


def check(connection: Connection[Any], letters: Iterable[UUID], names: Sequence[str]) -> dict[str, int]:
    """How many steps of each name are behind the letters. Raises FarandoleError for a name that no letter has a step of,
    and for a step that somebody is at."""
    ids = list(letters)
    if not names or not ids:
        return {}
    found = _behind(connection, ids)
    there = sorted({one.name for one in found})
    for name in names:
        if name not in there:
            more = f", … ({len(there)} in all)" if len(there) > _NAMED else ""
            known = f"those there are: {', '.join(there[:_NAMED])}{more}" if there else "they have none"
            raise FarandoleError(f"no step of these dead letters is named {name!r}; {known}", ExitCode.NOT_FOUND)
    chosen = [one for one in found if one.name in names]
    for one in chosen:
        if one.seconds is not None:
            raise FarandoleError(f"{under_way(one)}; try again when it has ended")
    return {name: sum(one.name == name for one in chosen) for name in names}


def under_way(one: Behind) -> str:
    """Why a step cannot be forgotten now."""
    return f"step {one.name} of {one.agent} is under way, for {one.seconds:.0f} s more unless it goes on"


def forget(connection: Connection[Any], letters: Iterable[UUID], names: Sequence[str]) -> dict[UUID, str]:
    """Drop the named steps of the letters, durably. Returns the letters of which somebody is at one, and why: of these
    nothing is dropped."""
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")
        found = [one for one in _behind(connection, list(letters), lock=True) if one.name in names]
        busy = {one.letter: under_way(one) for one in found if one.seconds is not None}
        rows = {(one.event_id, one.agent, one.name) for one in found if one.letter not in busy}
        if rows:
            columns = [list(column) for column in zip(*sorted(rows), strict=True)]
            connection.execute(_SQL["book_unknown"], columns)
            connection.execute(_SQL["forget"], columns)
    return busy


def _behind(connection: Connection[Any], letters: list[UUID], *, lock: bool = False) -> list[Behind]:
    query = _SQL["of_letters"] + ("FOR UPDATE OF step" if lock else "")
    with connection.cursor(row_factory=dict_row) as cursor:
        return [Behind(**row) for row in cursor.execute(query, [letters])]
