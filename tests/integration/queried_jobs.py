"""The jobs that docs/queries.md asks about: fixed facts of two days, put into the tables as a projector does, without Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID, uuid5

from farandole import envelope, ids
from farandole.contracts import codec
from farandole.contracts.lookup import Schemas
from farandole.event import Event, JobDeadLettered, JobFailed, JobRedriven
from farandole.kafka import Record
from farandole.postgres import Connection
from farandole.projector.rows import Rows
from farandole.settings import Settings
from schemas.jobs import Acted, Classified, Done, Enriched, Submitted
from tests.integration.projection_tables import Folder, places
from tests.journeys import Log

EVENTS: tuple[type[Event], ...] = (
    Submitted,
    Classified,
    Enriched,
    Acted,
    Done,
    JobFailed,
    JobDeadLettered,
    JobRedriven,
)
HAIKU, SONNET, RULES = "claude-haiku-5-5", "claude-sonnet-5-5", "offline rules"
MAIL = {"category": "order_status", "urgency": "normal", "language": "en"}
#: Milliseconds for which an agent works on a mail, the first of a day; and how much longer on the next one.
WORK = {"classify": (800, 60), "enrich": (120, 10), "act": (2400, 200), "confirm": (3, 0)}
STAGES = (("classify", Classified), ("enrich", Enriched), ("act", Acted), ("confirm", Done))


@dataclass
class Jobs:
    """Facts as they are told, one job after the other; `today` begins late enough to be of the day it is read on."""

    settings: Settings
    claims: list[tuple[str, str, int, datetime]] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        now = datetime.now(UTC)
        self.midnight = datetime.combine(now.date(), time(), UTC)
        self.now = max(now, self.midnight + timedelta(minutes=6))
        self._log = Log(self.settings)
        self._contracts = {event: codec.contract(event, self.settings.flow) for event in EVENTS}

    @property
    def day(self) -> date:
        return self.midnight.date()

    def schemas(self) -> Schemas:
        found = Schemas(self.settings)
        for contract in self._contracts.values():
            found.add(contract.writer)
        return found

    def happens(
        self, event: type[Event], at: datetime, payload: dict[str, Any], agent: str, **changed: Any
    ) -> dict[str, Any]:
        """An event; `causes` or `key` and `tenant` say where it comes from. Its envelope."""
        contract, emitter = self._contracts[event], envelope.Emitter(agent)
        if causes := changed.pop("causes", None):
            fields = envelope.follow(causes, emitter, contract.writer.identity, 0, changed.pop("attempt", 1))
        else:
            tenant = changed.pop("tenant")
            trace = ids.trace_id_of_key(self.settings.flow, changed.pop("key"), tenant=tenant)
            fields = envelope.begin(trace, emitter, contract.writer.identity, tenant)
        fields |= {"occurred_at": int(at.timestamp() * 1_000_000)} | changed
        value = contract.encode(fields, event.model_validate(payload))
        self.records.append(self._log.put(contract.topic, 0, value, envelope.key_of(fields).encode()))
        return fields

    def comes(self, at: datetime, name: str, tenant: str, text: str = "Where is my order?") -> dict[str, Any]:
        payload = {"message_id": name, "sender": "a@example.com", "subject": "Order", "text": text, "received_at": at}
        return self.happens(Submitted, at, payload, "client", key=name, tenant=tenant)

    def goes_on(
        self,
        cause: dict[str, Any],
        stages: Sequence[tuple[str, type[Event]]],
        name: str,
        number: int = 0,
        slow: int = 1,
        by: str = RULES,
        fails: bool = False,
    ) -> dict[str, Any]:
        """The mail goes through `stages`, each claimed 40 ms after its cause; `slow`: so many times the work of enrich."""
        for agent, event in stages:
            first, more = WORK[agent]
            began = datetime.fromtimestamp(cause["occurred_at"] / 1_000_000, UTC)
            claimed = began + timedelta(milliseconds=40 + 10 * number)
            at = claimed + timedelta(milliseconds=(first + more * number) * (slow if agent == "enrich" else 1))
            self.claims.append((cause["event_id"], agent, cause["run"], claimed))
            if by != RULES and agent in ("classify", "act"):
                self.calls_model(cause, agent, at, SONNET if agent == "act" else by)
            if fails and event is Done:
                failure = {"agent": agent, "reason": "card_number", "detail": "holds a payment card's number"}
                return self.happens(JobFailed, at, failure, agent, causes=[cause])
            attempt = 3 if agent == "classify" and number == 5 else 1
            cause = self.happens(event, at, _payload(event, name, by, at), agent, causes=[cause], attempt=attempt)
        return cause

    def calls_model(
        self, cause: dict[str, Any], agent: str, at: datetime, model: str, outcome: str = "answered"
    ) -> None:
        tokens = (1100, 90) if model == HAIKU else (2300, 420)
        cost = {HAIKU: 1550, SONNET: 13200}[model] if outcome == "answered" else 0
        call = uuid5(UUID(cause["event_id"]), f"{agent} {model} {outcome}")
        told = (cause["trace_id"], cause["event_id"], agent, agent.title(), cause["tenant"], model)
        self.calls.append((call, at, *told, *(tokens if cost else (None, None)), cost, 900, outcome))


def _payload(event: type[Event], name: str, by: str, at: datetime) -> dict[str, Any]:
    mail = MAIL | {"message_id": name, "sender": "a@example.com", "subject": "Order", "decided_by": by}
    drafted_by = RULES if by == RULES else SONNET
    decided = {"message_id": name, "category": "order_status", "decision": "route", "team": "support"}
    decided["decided_by"] = drafted_by
    if event is Classified:
        return mail | {"why": "names an order", "excerpt": "Where is my order?", "received_at": at}
    if event is Enriched:
        return mail | {"entities": {"orders": ["A-10423"]} if name == "m-101" else {}, "history": None}
    return decided | ({"urgency": "normal", "language": "en", "why": "a person knows more"} if event is Acted else {})


def tell(jobs: Jobs) -> dict[str, Any]:
    """Everything that happened. Returns the event that a retry waits to handle."""
    for number in range(8):
        at = jobs.midnight - timedelta(hours=12) + timedelta(minutes=number)
        first = jobs.comes(at, f"m-{number + 1}", "globex" if number % 2 else "acme")
        by = HAIKU if number in (2, 3) else RULES
        jobs.goes_on(first, STAGES, f"m-{number + 1}", number, by=by, fails=number in (1, 6))
    today = jobs.now - timedelta(minutes=4)
    order = jobs.comes(today, "m-101", "acme", "Where is my order A-10423?")
    jobs.goes_on(order, STAGES, "m-101", 0, slow=8, by=HAIKU)
    jobs.calls_model(order, "act", today, SONNET, "overloaded")
    jobs.goes_on(jobs.comes(today, "m-102", "globex"), STAGES, "m-102", 1, slow=8)
    jobs.goes_on(jobs.comes(today, "m-103", "globex"), STAGES, "m-103", 2, slow=8, fails=True)
    jobs.goes_on(jobs.comes(today, "m-104", "acme"), STAGES, "m-104", 5, slow=8)
    _redriven(jobs, jobs.comes(today, "m-105", "acme"), today)
    waits = jobs.goes_on(jobs.comes(today, "m-106", "globex"), STAGES[:2], "m-106", 3, slow=8)
    past = jobs.now - timedelta(days=3)
    rejected = jobs.comes(past, "m-51", "acme")
    jobs.happens(
        JobDeadLettered, past, _letter("classify", "rejected", "a mail without a sender"), "classify", causes=[rejected]
    )
    jobs.comes(past, "m-52", "globex")
    return waits


def _redriven(jobs: Jobs, first: dict[str, Any], at: datetime) -> None:
    """Its second stage was dead-lettered, and went through when a person had it redriven."""
    classified = jobs.goes_on(first, STAGES[:1], "m-105", 4)
    at += timedelta(seconds=5)
    letter = _letter("enrich", "attempts", "ConnectionError: the shop does not answer")
    dead = jobs.happens(JobDeadLettered, at, letter, "enrich", causes=[classified], attempt=4)
    at += timedelta(seconds=60)
    told = {"agent": "enrich", "dead_event_id": dead["event_id"], "reason": "the shop is back"}
    jobs.happens(JobRedriven, at, told, "farandole", causes=[dead | {"run": 1}])
    raised = classified | {"run": 1, "occurred_at": int(at.timestamp() * 1_000_000)}
    jobs.goes_on(raised, STAGES[1:], "m-105", 4, slow=8)


def _letter(agent: str, cause: str, error: str) -> dict[str, Any]:
    lies = {"dead_letter_topic": f"{agent}.dead", "origin_topic": "jobs.submitted", "origin_partition": 0}
    return {"agent": agent, "cause": cause, "error": error, "attempts": 4, "origin_offset": 0} | lies


def fill(settings: Settings, database: Connection[Any]) -> Jobs:
    """The tables with those jobs in them; the projections are installed already."""
    jobs = Jobs(settings)
    waits = tell(jobs)
    with database.cursor().copy("COPY step (event_id, agent, run, created_at) FROM STDIN") as rows:
        for claim in jobs.claims:
            rows.write_row(claim)
    columns = "call_id, at, trace_id, event_id, agent, step, tenant, model, input_tokens, output_tokens, micro_dollars"
    with database.cursor().copy(f"COPY usage ({columns}, latency_ms, outcome) FROM STDIN") as rows:
        for call in jobs.calls:
            rows.write_row(call)
    database.execute(
        'INSERT INTO wait (agent, event_id, run, seq, kind, trace_id, due, topic, partition, "offset", timestamp_ms, value,'
        " headers, attempts, error) VALUES ('act', %(event_id)s, 0, 1, 'retry', %(trace_id)s, now() + interval '30 minutes',"
        " 'jobs.enriched', 0, 0, 0, '', '[]', 2, 'RateLimited: try again in 30 minutes')",
        {"event_id": waits["event_id"], "trace_id": waits["trace_id"]},
    )
    projector = Folder(settings, "a", places(jobs.records, settings))
    projector.rows = Rows(jobs.schemas(), settings)
    projector.fold(jobs.records)
    return jobs
