"""The rows of steps in Postgres: claimed, kept alive and ended, a batch a statement. Every call blocks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Any, TypeVar

from farandole.postgres import Connection, texts
from farandole.steps.claims import (
    Answer,
    Call,
    Claim,
    Done,
    FailedForGood,
    Finish,
    Granted,
    Held,
    Leased,
    OverBudget,
    Step,
)

_SQL = texts(__file__)

#: Columns of the arrays that the statements are given.
_STEP = ("n", "event_id", "agent", "name", "trace_id", "tenant", "owner")
_CLAIM = (*_STEP, "run", "hold", "call_id", "model", "ceiling")
_ALLOWANCE = ("n", "key", "most", "daily")
_FINISH = (*_STEP, "state", "result", "error", "failure", "failed_run", "trail")
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_CALL = ("call_id", "model", *_TOKENS, "micro_dollars", "latency_ms", "stop_reason", "outcome", "request_id")


W = TypeVar("W", Claim, Finish)


class Store:
    """Every method may be repeated when its answer was lost: the second time finds what the first one did.

    Args:
        lease: seconds that an effect is its owner's without another word of it.
    """

    def __init__(self, lease: float) -> None:
        self._lease = lease

    def begin(self, connection: Connection[Any], claims: Sequence[Claim]) -> list[Answer]:
        """The answer to each claim, in their order. One statement; and one more for each claim where their model calls do
        not all fit into the budgets together."""
        rows = [(allowance.key, allowance.daily) for claim in claims for allowance in _allowances(claim)]
        day = None
        if rows:
            found = connection.execute(_SQL["budgets"], _columns(sorted(set(rows)), 2)).fetchone()
            day = found[0] if found else None
        answers = [self._begin(connection, group, day) for group in _each_step_once(claims)]
        return [answer for group in answers for answer in group]

    def _begin(self, connection: Connection[Any], claims: Sequence[Claim], day: str | None) -> list[Answer]:
        given = [
            (n, *_identity(claim.step), claim.owner, claim.run, claim.hold, *_money(claim))
            for n, claim in enumerate(claims)
        ]
        allowances = [(n, a.key, a.limit, a.daily) for n, claim in enumerate(claims) for a in _allowances(claim)]
        values: dict[str, Any] = {"lease": self._lease, "day": day}
        values |= _named(_CLAIM, given)
        values |= {f"allowance_{name}": column for name, column in _named(_ALLOWANCE, allowances).items()}
        found = sorted(connection.execute(_SQL["begin"], values), key=_n)
        if len(claims) == 1 or not any(_short(row) for row in found):
            return [_answer(row) for row in found]
        # None of them was claimed. Those that have ended need no money, and some of the others may fit.
        half = len(claims) // 2
        return self._begin(connection, claims[:half], day) + self._begin(connection, claims[half:], day)

    def finish(self, connection: Connection[Any], ends: Sequence[Finish]) -> list[bool]:
        """Whether each step was still its owner's, and is written so now. What its call cost is booked in any case."""
        answers = [self._finish(connection, group) for group in _each_step_once(ends)]
        return [mine for group in answers for mine in group]

    def _finish(self, connection: Connection[Any], ends: Sequence[Finish]) -> list[bool]:
        found = self._end(connection, ends)
        # A take-over that commits meanwhile writes the call's row first, unseen by the statement: it is corrected now.
        if untold := [ends[n] for n, (_, told) in enumerate(found) if not told]:
            self._end(connection, untold)
        return [mine for mine, _ in found]

    def _end(self, connection: Connection[Any], ends: Sequence[Finish]) -> list[tuple[bool, bool]]:
        given = [(n, *_identity(end.step), *_end(end)) for n, end in enumerate(ends)]
        values = _named(_FINISH, given) | _named(_CALL, [_call(end.call) for end in ends])
        return [(bool(mine), told) for _, mine, told in sorted(connection.execute(_SQL["finish"], values), key=_n)]

    def beat(self, connection: Connection[Any], leases: Sequence[tuple[Step, str]]) -> None:
        """The owners of these steps live."""
        rows = [(step.event_id, step.agent, step.name, owner) for step, owner in leases]
        connection.execute(_SQL["beat"], [self._lease, *_columns(rows, 4)])


def _each_step_once(things: Sequence[W]) -> Iterable[Sequence[W]]:
    """In their order; of two about one step, the second in a later statement, which sees what came of the first."""
    group: list[W] = []
    steps: set[Step] = set()
    for thing in things:
        if thing.step in steps:
            yield group
            group, steps = [], set()
        group.append(thing)
        steps.add(thing.step)
    if group:
        yield group


def _n(row: tuple[Any, ...]) -> int:
    return int(row[0])


def _answer(row: tuple[Any, ...]) -> Answer:
    granted, generation, trail, state, result, error, failure, seconds, *_ = row[1:]
    if granted:
        return Granted(generation, tuple(json.loads(trail)) if trail else ())
    if _short(row):
        key, most, taken, needed, _, day_ends_in = row[9:]
        return OverBudget(key, most, taken, needed, day_ends_in if _daily(key) else None)
    match state:
        case "done":
            return Done(result, error)
        case "held":
            return Held(error or "")
        case "failed" if failure is not None:
            return FailedForGood(failure)
        case _:  # in somebody's hands, or about to be: whoever asks again sees more
            return Leased(seconds or 0.0)


def _short(row: tuple[Any, ...]) -> bool:
    """Whether it may run, were there the money."""
    return bool(row[13]) and row[9] is not None


def _daily(key: str) -> bool:
    return not key.startswith("job/")


def _identity(step: Step) -> tuple[Any, ...]:
    return step.event_id, step.agent, step.name, step.trace_id, _storable(step.tenant)


def _end(end: Finish) -> tuple[Any, ...]:
    return end.owner, end.state, end.result, _storable(end.error), end.failure, end.failed_run, end.trail


def _money(claim: Claim) -> tuple[Any, ...]:
    money = claim.money
    return (money.call_id, money.model, money.ceiling) if money else (None, None, None)


def _allowances(claim: Claim) -> Sequence[Any]:
    return claim.money.allowances if claim.money else ()


def _call(call: Call | None) -> tuple[Any, ...]:
    if call is None:
        return (None,) * len(_CALL)
    tokens = astuple(call.usage) if call.usage else (None,) * len(_TOKENS)
    return (
        call.call_id,
        call.model,
        *tokens,
        call.micro_dollars,
        call.latency_ms,
        _storable(call.stop_reason),
        call.outcome,
        _storable(call.request_id),
    )


def _named(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return dict(zip(names, _columns(rows, len(names)), strict=True))


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def _storable(text: str | None) -> str | None:
    """Postgres has no NUL in texts, and UTF-8 no lone surrogates; an error may quote both."""
    if text is None:
        return None
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")[:2000]
