"""What a user declares: an agent with its handler, and the wiring of both in a flow."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Never, TypeVar

from farandole.contracts.codec import Contract, contract
from farandole.contracts.deriving import topic_of
from farandole.envelope import Emitter
from farandole.errors import ConfigurationError
from farandole.event import Event, JobDeadLettered, JobFailed
from farandole.handler import Handler, place_of, read_handler
from farandole.project import load_file
from farandole.retries import Errors, Order, policy, seconds
from farandole.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
Opener = Callable[[Settings], AbstractAsyncContextManager[Any]]


class Agent:
    """One consumer group: reads a topic, runs a handler, emits.

    Args:
        name: of the group, its slots and its own topics (`<name>.dead`).
        concurrency: handlings in flight at once.
        timeout: of one attempt. A plain handler's thread cannot be stopped: its attempt is given up, not ended.
        attempts: how often a failing handler is tried.
        backoff: before the second attempt; doubles, with jitter. `Retry(after=…)` is kept exactly.
        max_backoff: no wait of the backoff's own is longer.
        in_place: a wait up to this is made where the handler runs, and its key waits with it; a longer one holds nothing
            but a row of the table `wait`.
        retry_on: error types. When given, only these, timeouts and `Retry` are tried again; any other error is
            dead-lettered at once ("not_retried").
        reject_on: error types that are dead-lettered at once ("rejected").
        order: "overtake": later events of a key do not wait for one that is put off. "hold": they do.
        inline: the handler is a pure, fast function and runs without a thread or task of its own.
        cpu: the plain handler computes for long and runs in processes: how many, True for one a core. They load the agent's
            file anew. `timeout` ends the process; a process that dies fails its attempt and is replaced.
        reasons: the closed list of words this agent may `Fail` with.
        resource: opens what the handler needs (a pool, a client), once a worker: `resource(settings)` is an async
            context manager, its value is `ctx.resource`.
        version: shown in `emitted_by`; never part of an id.
        if_dead: "fail" ends the job as failed when an event of it is dead-lettered; without it the job is blocked.
        over_budget: what becomes of a job whose next model call does not fit into a budget: "fail" ends it ("over_budget"),
            "wait" puts it off until the budget renews.
        brake: after so many dead letters in a row, or more than half of the last thousand, the worker takes nothing more,
            says why, and waits for a person; None never does.
    """

    def __init__(
        self,
        name: str,
        *,
        concurrency: int = 100,
        timeout: str | float = "60s",
        attempts: int = 4,
        backoff: str | float = "250ms",
        max_backoff: str | float = "5m",
        in_place: str | float = "1s",
        retry_on: Errors | None = None,
        reject_on: Errors = (),
        order: Order = "overtake",
        inline: bool = False,
        cpu: bool | int = False,
        reasons: type[StrEnum] | None = None,
        resource: Opener | None = None,
        version: str = "",
        if_dead: Literal["fail"] | None = None,
        over_budget: Literal["fail", "wait"] = "fail",
        brake: int | None = 100,
        **unknown: Never,
    ) -> None:
        for option in unknown:
            raise ConfigurationError(
                f"agent {name}: unknown option {option!r}; expected {', '.join(Agent.__init__.__kwdefaults__ or ())}"
            )
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
            raise ConfigurationError(
                f"agent name {name!r}: expected lower-case letters, digits and _, at most 40 characters"
            )
        if name in ("projector", "farandole"):
            raise ConfigurationError(
                f"agent name {name!r} is taken: the runtime has a consumer group or topics of that name"
            )
        if concurrency < 1:
            raise ConfigurationError(f"agent {name}: concurrency is {concurrency}; expected 1 or more")
        if if_dead not in (None, "fail") or (brake or 0) < 0:
            raise ConfigurationError(
                f"agent {name}: if_dead is {if_dead!r} and brake {brake}; expected 'fail' or None, and a number or None"
            )
        if over_budget not in ("fail", "wait"):
            raise ConfigurationError(f"agent {name}: over_budget is {over_budget!r}; expected 'fail' or 'wait'")
        self.name = name
        self.over_budget = over_budget
        self.if_dead = if_dead
        self.brake = brake or 0
        self.concurrency = concurrency
        self.timeout = seconds(timeout, f"agent {name}: timeout")
        self.retries = policy(
            f"agent {name}",
            attempts=attempts,
            backoff=backoff,
            max_backoff=max_backoff,
            in_place=in_place,
            retry_on=retry_on,
            reject_on=reject_on,
            order=order,
        )
        self.inline = inline
        self.cpu = _processes(self, cpu, resource)
        self.reasons = reasons
        self.resource = resource
        self.emitter = Emitter(name, version)
        self.handler: Handler | None = None
        self.path: Path | None = None  #: the file that `load_agent` found it in

    @property
    def dead_topic(self) -> str:
        """Where its dead letters go, without the namespace."""
        return f"{self.name}.dead"

    @property
    def wake_topic(self) -> str:
        """Where records that were put aside come back to it, without the namespace."""
        return f"{self.name}.wake"

    def handle(self, function: F) -> F:
        """Register the handler; its annotations say what is read and emitted. Returns the function unchanged."""
        if self.handler:
            raise ConfigurationError(
                f"{place_of(function)}: agent {self.name} has a handler already ({place_of(self.handler.function)})"
            )
        handler = read_handler(function)
        if handler.is_async and (self.inline or self.cpu):
            what = "inline=True is for plain functions" if self.inline else "cpu is for plain functions, in processes"
            raise ConfigurationError(f"{place_of(function)}: {what}; this one is async")
        self.handler = handler
        return function

    def wiring(self, flow: str) -> Wiring:
        """The agent bound to a flow. Raises ConfigurationError when it has no handler or its types do not fit together."""
        if not self.handler:
            raise ConfigurationError(f"agent {self.name}: no handler; expected a function decorated with @agent.handle")
        place = place_of(self.handler.function)
        if self.name == flow:
            raise ConfigurationError(
                f"agent {self.name}: an agent cannot be called like the flow, their topics would mix"
            )
        topics = sorted({topic_of(event, flow) for event in self.handler.reads})
        if len(topics) != 1:
            raise ConfigurationError(f"{place}: an agent reads one topic; its types lie on {', '.join(topics)}")
        reads = _by_name([contract(event, flow) for event in self.handler.reads], place)
        for event in self.handler.emits:
            if event.__event__.view:
                raise ConfigurationError(
                    f"{place}: {event.__name__} is a view, which is read only; emit the event that it is a view of"
                )
        emitted: tuple[type[Event], ...] = (*self.handler.emits, JobFailed, JobDeadLettered)
        emits = {event: contract(event, flow) for event in emitted}
        return Wiring(self, self.handler, topics[0], reads, emits)


@dataclass(frozen=True, slots=True)
class Wiring:
    """An agent in its flow: topics are without the namespace; `reads` is by full Avro name.

    `limits` are bytes that a record may have, by topic, as the broker says; Kafka's default holds for the others.
    """

    agent: Agent
    handler: Handler
    topic: str
    reads: dict[str, Contract]
    emits: dict[type[Event], Contract]
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def contracts(self) -> list[Contract]:
        """Every schema that this agent writes or reads."""
        return list(dict.fromkeys((*self.reads.values(), *self.emits.values())))

    def written_with(self, contracts: Mapping[type[Event], Contract]) -> Wiring:
        """The same, its outputs written with these contracts."""
        return replace(self, emits={event: contracts[event] for event in self.emits})

    @property
    def writes(self) -> set[str]:
        """Every topic that a handling may write to."""
        return {self.agent.dead_topic, *(contract.topic for contract in self.emits.values())}


def _by_name(contracts: list[Contract], place: str) -> dict[str, Contract]:
    """Contracts by the full names of what they read, earlier names behind present ones."""
    present = {made.writer.name: made for made in contracts}
    for made in contracts:
        twin = present[made.writer.name]
        if twin is not made:
            raise ConfigurationError(
                f"{place}: {made.event.__name__} and {twin.event.__name__} are both the event {made.writer.name}; "
                "a handler reads it as one of them"
            )
    return {alias: made for made in contracts for alias in made.writer.aliases} | present


def load_agent(path: str | Path) -> Agent:
    """The agent in a file, which must hold exactly one. Errors name the file, and the line where it is wrong."""
    module = load_file(Path(path))
    found = [value for value in vars(module).values() if isinstance(value, Agent)]
    if len(set(map(id, found))) != 1:
        raise ConfigurationError(
            f"{path}: {len(found)} agents in this file; expected one, as in `agent = Agent('classify')`"
        )
    if not found[0].handler:
        raise ConfigurationError(
            f"{path}: agent {found[0].name} has no handler; expected a function decorated with @agent.handle"
        )
    found[0].path = Path(path).resolve()
    return found[0]


def _processes(agent: Agent, cpu: bool | int, resource: Opener | None) -> int:
    """How many processes run its handler; 0: none."""
    if not isinstance(cpu, int) or cpu < 0:
        raise ConfigurationError(f"agent {agent.name}: cpu is {cpu!r}; expected True or a number of processes")
    if cpu and agent.inline:
        raise ConfigurationError(f"agent {agent.name}: inline=True runs the handler here, cpu in processes; choose one")
    if cpu and resource:
        raise ConfigurationError(
            f"agent {agent.name}: a resource is opened in the worker and cannot go into the processes of cpu; open what the "
            "handler needs in its module"
        )
    return (os.cpu_count() or 1) if cpu is True else int(cpu)
