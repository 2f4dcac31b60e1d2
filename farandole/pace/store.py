"""The row of a model's pace in Postgres: one statement for all that a process has to say and to ask. Every call blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from farandole.models.configured import Limit
from farandole.pace.report import Estimate, Report
from farandole.postgres import Connection, texts

_SQL = texts(__file__)

#: Seconds. No slot is given further ahead: what is asked later may be told better.
HORIZON = 4.0
#: Seconds after a model has opened again: one call a second at first, twice as many with every second.
REOPENING = 10.0
#: Failures in a row, over all workers, after which a model is left alone.
FAILURES = 5
#: Of what is learned from one call about estimates, and of what was known before.
_LEARN = 0.1


@dataclass(frozen=True, slots=True)
class Seen:
    """Whether a model may be called; times are seconds since 1970 on the database's clock."""

    now: float
    closed_until: float = 0.0
    level: int = 0  #: of the brake; above 0 only a probe may call
    reason: str | None = None
    opens: float = 0.0  #: since when it reopens


@dataclass(frozen=True, slots=True)
class Slot:
    """When a call may be made, and what it takes of the limits."""

    at: float
    taken: Estimate


@dataclass(frozen=True, slots=True)
class Answer:
    """`slots` are for the first of those that asked; `probe`: the first may call now, as the probe."""

    seen: Seen
    probe: bool
    slots: Sequence[Slot]


class Store:
    """Every method may be repeated when its answer was lost: slots are then left empty, and failures counted twice.

    Args:
        key: the fingerprint of the API key.
        offset: seconds to add to the database's clock; for tests.
    """

    def __init__(self, key: str, offset: Callable[[], float] = lambda: 0.0) -> None:
        self._key = key
        self._offset = offset

    def look(self, connection: Connection[Any], model: str) -> Seen:
        """Whether the model may be called now."""
        row = connection.execute(_SQL["look"], self._named(model)).fetchone()
        if row is None or row[1] is None:
            return Seen(row[0] if row else 0.0)
        return Seen(*row)

    def turns(
        self,
        connection: Connection[Any],
        model: str,
        limit: Limit,
        report: Report,
        asked: Sequence[Estimate],
        *,
        owner: str,
        probe_seconds: float = 30.0,
        lead: float = 0.0,
    ) -> Answer:
        """Note the report, and give slots to those who ask, in their order: as many as have one within `HORIZON`.

        Args:
            owner: of the probe, should one be granted; expires after `probe_seconds`.
            lead: seconds; no slot is given sooner than this.
        """
        values = self._named(model) | _limits(limit) | _report(report)
        values |= {"inputs": [one.input for one in asked], "outputs": [one.output for one in asked]}
        values |= {"owner": owner, "probe_seconds": probe_seconds, "lead": lead, "horizon": HORIZON}
        values |= {"failures_limit": FAILURES, "reopening": REOPENING}
        rows = connection.execute(_SQL["turns"], values).fetchall()
        if not rows:
            connection.execute(_SQL["row"], self._named(model))
            rows = connection.execute(_SQL["turns"], values).fetchall()
        return _answer(rows, asked)

    def _named(self, model: str) -> dict[str, Any]:
        return {"key": self._key, "model": model, "offset": self._offset()}


def _answer(rows: Sequence[tuple[Any, ...]], asked: Sequence[Estimate]) -> Answer:
    now, shut, level, reason, opens, probe = rows[0][:6]
    slots = [
        Slot(at, Estimate(one.input, one.output, input_taken, output_taken))
        for (*_, at, input_taken, output_taken), one in zip(rows[1:], asked, strict=False)
    ]
    return Answer(Seen(now, shut, level, reason, opens), probe, slots)


def _limits(limit: Limit) -> dict[str, Any]:
    return {
        "requests_limit": limit.requests,
        "input_limit": limit.input_tokens,
        "output_limit": limit.output_tokens,
    }


def _report(report: Report) -> dict[str, Any]:
    return {
        "failed": report.failed,
        "succeeded": report.succeeded,
        "overloaded": report.overloaded,
        "close": report.close,
        "why": report.why,
        "probe": report.probe,
        "probe_won": report.probe_won,
        "probing": report.probing,
        "requests_told": report.limits.get("requests"),
        "input_told": report.limits.get("input"),
        "output_told": report.limits.get("output"),
        "input_owed": report.input.owed,
        "output_owed": report.output.owed,
        "input_seen": report.input.share,
        "output_seen": report.output.share,
        "weight": 1 - (1 - _LEARN) ** report.calls,
    }
