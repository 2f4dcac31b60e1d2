"""Effects as a person looks at them: listed, and with the model calls they took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from farandole.postgres import Connection, dict_row, psycopg, texts
from farandole.steps.claims import Step

_SQL = texts(__file__, "listed*.sql")

#: How an effect can stand.
STATES = ("held", "leased", "failed", "done", "forgotten")


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect, as its row in `step` says."""

    event_id: UUID  #: what was handled
    trace_id: UUID
    agent: str
    name: str
    state: str  #: of STATES
    generation: int  #: how often it was forgotten
    begun: int  #: how often its call was begun
    owner: str | None
    lease_seconds: float | None  #: until the lease ends; negative: since it has ended
    hold: bool
    result: str | None  #: JSON
    trail: str | None  #: a model's replies so far that did not do: JSON
    error: str | None  #: of the last call
    failure: str | None  #: failed for good in the run `failed_run`: JSON
    failed_run: int | None
    call_id: UUID | None
    model: str | None
    reserved: int | None  #: micro-dollars, in each of
    budgets: list[str] | None
    tenant: str | None
    created_at: datetime
    finished_at: datetime | None
    looked_at: datetime  #: the database's clock

    @property
    def live(self) -> bool:
        """Whether somebody is at it now."""
        return self.state == "leased" and (self.lease_seconds or 0) > 0

    @property
    def unknown(self) -> bool:
        """Whether nobody can say what came of its call: a person may."""
        left = self.state == "failed" and self.finished_at is None  # nobody has ended it
        return self.state == "held" or left or (self.state == "leased" and not self.live)

    @property
    def key(self) -> str:
        """The idempotency key that its call was, or will be, given."""
        return Step(str(self.event_id), self.agent, self.name, str(self.trace_id)).key(self.generation)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model: a row of `usage`."""

    call_id: UUID
    at: datetime
    model: str
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    micro_dollars: int | None
    latency_ms: int | None
    stop_reason: str | None
    outcome: str
    request_id: str | None


def effects(
    connection: Connection[Any],
    *,
    trace_id: str | UUID | None = None,
    event_id: str | UUID | None = None,
    agent: str | None = None,
    name: str | None = None,
    state: str | None = None,
    limit: int | None = None,
) -> list[Effect]:
    """The effects that fit all that is given; those that wait for a person first, then the latest."""
    given = {"trace_id": trace_id, "event_id": event_id, "agent": agent, "name": name, "state": state, "limit": limit}
    return [Effect(**row) for row in _rows(connection, "listed", given)]


def calls(connection: Connection[Any], effect: Effect) -> list[ModelCall]:
    """The model calls of an effect, in the order in which they ended."""
    given = {
        "event_id": effect.event_id,
        "agent": effect.agent,
        "name": effect.name,
        "trace_id": effect.trace_id,
    }
    return [ModelCall(**row) for row in _rows(connection, "listed_calls", given)]


def _rows(connection: Connection[Any], query: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        with connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(_SQL[query], given).fetchall()
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.InvalidSchemaName):
        return []  # no agent of this version ever ran
