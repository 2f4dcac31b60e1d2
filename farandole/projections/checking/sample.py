"""The events a projection is checked with: those of the latest jobs, and drawn ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from farandole.event import Event
from farandole.postgres import script, sql
from farandole.projections.checking import drawn
from farandole.projections.checking.findings import Shown
from farandole.projections.checking.sandbox import SQL, Sandbox
from farandole.projector.rows import COLUMNS, copy_data

#: Which events: `both` takes real ones where there are any.
Source = Literal["both", "real", "generated"]

#: Real events a job, on average, that are taken at most: small samples shrink fast.
EVENTS_A_JOB = 10

#: Characters of a body that a report holds.
_BODY = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """Events in the sandbox that are tried together, and the job of each."""

    source: Literal["real", "generated"]
    jobs: dict[UUID, UUID]

    @property
    def ids(self) -> list[UUID]:
        return sorted(self.jobs)


def samples(sandbox: Sandbox, classes: Sequence[type[Event]], source: Source, jobs: int, seed: int) -> Iterator[Sample]:
    """Bring events into the sandbox, real ones first, each kind as a sample of its own."""
    if source != "generated":
        log = sql.Identifier(sandbox.settings.schema_name, "event_log")
        query = sql.SQL(SQL["latest"]).format(log=log)
        sandbox.connection.execute(query, {"jobs": jobs, "events": EVENTS_A_JOB * jobs})
        real = _jobs(sandbox)
        if real:
            yield Sample("real", real)
    if source != "real":
        known = _jobs(sandbox)
        _draw(sandbox, classes, jobs, seed)
        yield Sample("generated", {one: job for one, job in _jobs(sandbox).items() if one not in known})


def _jobs(sandbox: Sandbox) -> dict[UUID, UUID]:
    return dict(sandbox.connection.execute("SELECT event_id, trace_id FROM farandole_sample").fetchall())


def _draw(sandbox: Sandbox, classes: Sequence[type[Event]], jobs: int, seed: int) -> None:
    before = _jobs(sandbox).keys()
    rows = drawn.rows(classes, sandbox.settings, jobs, seed)
    columns = sql.SQL(", ").join(map(sql.Identifier, COLUMNS))
    statement = sql.SQL("COPY farandole_sample ({}) FROM STDIN (FORMAT binary)").format(columns)
    with sandbox.connection.cursor().copy(statement) as copy:
        copy.write(copy_data(rows))
    fresh = sorted(_jobs(sandbox).keys() - before)
    bare = random.Random(seed).sample(fresh, len(fresh) // 20)  # as of a payload that has no JSON form
    sandbox.connection.execute("UPDATE farandole_sample SET body = NULL WHERE event_id = ANY (%s)", (bare,))


def shown(sandbox: Sandbox, ids: Sequence[UUID], generated: bool) -> list[Shown]:
    """The events with letters, in the order of their ids."""
    found = sandbox.connection.execute(script(SQL["shown"]), {"ids": list(ids)}).fetchall()
    return [
        Shown(letter(at), str(id_), str(job), type_, stage, run, hop, occurred_at, _short(body), generated)
        for at, (id_, job, type_, stage, run, hop, occurred_at, body) in enumerate(found)
    ]


def letter(place: int) -> str:
    """What the event at a place is called: A to Z, then A1 and so on."""
    return chr(ord("A") + place % 26) + (str(place // 26) if place >= 26 else "")


def _short(body: str | None) -> str:
    if body is None:
        return "null"
    return body if len(body) <= _BODY else body[: _BODY - 1] + "…"
