"""In which order a fold touches rows: two batches that touch the same rows crosswise wait for each other for ever."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from uuid import UUID

from farandole import postgres
from farandole.postgres import sql
from farandole.projections.checking.findings import Finding
from farandole.projections.checking.layouts import PLANS
from farandole.projections.checking.sandbox import SQL, Refused, Sandbox, planned, refusals, taken
from farandole.projections.checking.trials import Trials

#: A row: its table, and its key as text.
Row = tuple[str, str]

#: Batches of some of the events, besides all of them in the order of their ids and in its reverse.
_SOME = 4


def found(trials: Trials, jobs: Mapping[UUID, UUID], seed: int) -> Iterator[Finding]:
    """Rows touched crosswise, and rows written for a batch without new events.

    Batches that share a job never fold at the same time (the core fold locks their jobs first), so for any other
    projection only batches of different jobs are held against each other.
    """
    sandbox = trials.sandbox
    before, mine, others = _dealt(jobs, seed)
    if sandbox.core is None:
        mine = others = mine + others
    sandbox.empty()
    try:
        trials.batch(sandbox.connection, before)  # so that some rows are there to be updated
        with _watched(sandbox):
            yield from _idle(sandbox)
            yield from _crossed(sandbox, mine, others, random.Random(seed))
    except Refused:
        return  # the trials tell of it


def _dealt(jobs: Mapping[UUID, UUID], seed: int) -> list[list[UUID]]:
    """The events, by jobs, in three parts."""
    names = sorted(set(jobs.values()))
    random.Random(seed).shuffle(names)
    parts = [set(names[start::3]) for start in range(3)]
    return [sorted(one for one, job in jobs.items() if job in part) for part in parts]


def _crossed(sandbox: Sandbox, mine: list[UUID], others: list[UUID], chance: random.Random) -> Iterator[Finding]:
    seen: list[list[list[Row]]] = [[], []]
    for plan in PLANS:
        for side, ids in zip(seen, (mine, others), strict=True):
            some = [chance.sample(ids, -(-len(ids) // 2)) for _ in range(_SOME)]
            orders = [ids[::-1]] if plan else [ids, ids[::-1], *some]
            side += [_touched(sandbox, order, plan) for order in orders]
    for one in seen[0]:
        for other in seen[1]:
            if crossing := _opposite(one, other):
                yield _deadlock(*crossing, sandbox)
                return


def _idle(sandbox: Sandbox) -> Iterator[Finding]:
    rows = _touched(sandbox, [], ())
    if rows:
        yield Finding(
            "empty_batch",
            f"the fold touches {len(rows)} row(s) of {rows[0][0]} when new_events is empty; nothing is to be written then",
            [
                "An aggregate without GROUP BY gives a row even for no events: add HAVING count(*) > 0, or group by a key."
            ],
        )


def _deadlock(first: Row, second: Row, sandbox: Sandbox) -> Finding:
    key = ", ".join(sandbox.keys[second[0]])
    return Finding(
        "deadlock",
        f"rows are touched crosswise: one batch touches {first[0]} ({first[1]}) before {second[0]} ({second[1]}), another one"
        " the other way round; two projectors with such batches wait for each other until Postgres ends one (deadlock)",
        [
            f"Touch rows in the order of their key: INSERT INTO {second[0]} … SELECT … ORDER BY {key}. An UPDATE or DELETE"
            " takes them as its plan finds them: use INSERT … ON CONFLICT DO UPDATE."
        ],
    )


def _touched(sandbox: Sandbox, ids: Sequence[UUID], plan: Sequence[str]) -> list[Row]:
    """The rows in the order in which one batch of `ids` first touches them. It is taken back."""
    steps = [planned(plan), taken(ids), sandbox.folded(), SQL["touched"]]
    with refusals(), sandbox.connection.transaction(force_rollback=True):
        cursor = sandbox.connection.execute(postgres.script(";\n".join(steps)), prepare=False)
        while cursor.nextset():  # to the last statement's
            pass
        rows = cursor.fetchall()
    return list(dict.fromkeys(rows))


def _opposite(one: Sequence[Row], other: Sequence[Row]) -> tuple[Row, Row] | None:
    """Two rows that both touch, in opposite orders.

    >>> _opposite([("t", "1"), ("t", "2"), ("t", "3")], [("t", "3"), ("t", "1")])
    (('t', '1'), ('t', '3'))
    """
    places = {row: place for place, row in enumerate(other)}
    common = [row for row in one if row in places]
    pairs = pairwise(common)
    return next(((row, after) for row, after in pairs if places[row] > places[after]), None)


@contextmanager
def _watched(sandbox: Sandbox) -> Iterator[None]:
    """Triggers write down what is touched, for the block."""
    connection = sandbox.connection
    connection.execute(postgres.script(SQL["touching"]), prepare=False)
    try:
        for table, key in sandbox.keys.items():
            statement = sql.SQL(
                "CREATE TRIGGER farandole_touch BEFORE INSERT OR UPDATE OR DELETE ON {}"
                " FOR EACH ROW EXECUTE FUNCTION farandole_touch({})"
            )
            names = sql.SQL(", ").join(map(sql.Literal, key))
            connection.execute(statement.format(sql.Identifier(sandbox.schema, table), names))
        yield
    finally:
        connection.execute("DROP FUNCTION farandole_touch CASCADE; DROP TABLE pg_temp.farandole_touched", prepare=False)
