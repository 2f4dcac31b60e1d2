"""What a user declares: an agent, its handler, and the wiring read from the handler's annotations."""

from __future__ import annotations

import inspect
import os
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from farandole.avro import topic_of
from farandole.codec import Contract, contract
from farandole.context import BlockingContext, Context
from farandole.envelope import Emitter
from farandole.errors import ConfigurationError
from farandole.event import Event, JobDeadLettered, JobFailed
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
        backoff: before the second attempt; doubles, with jitter, up to `max_backoff`. `Retry(after=…)` is kept exactly.
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
        brake: so many dead letters in a row, or half of the last thousand, stop the worker; None never does.
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
        brake: int | None = 100,
    ) -> None:
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
        self.name = name
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
                f"{_place(function)}: agent {self.name} has a handler already ({_place(self.handler.function)})"
            )
        self.handler = _read_handler(self, function)
        return function

    def wiring(self, flow: str) -> Wiring:
        """The agent bound to a flow. Raises ConfigurationError when it has no handler or its types do not fit together."""
        if not self.handler:
            raise ConfigurationError(f"agent {self.name}: no handler; expected a function decorated with @agent.handle")
        place = _place(self.handler.function)
        if self.name == flow:
            raise ConfigurationError(
                f"agent {self.name}: an agent cannot be called like the flow, their topics would mix"
            )
        topics = sorted({topic_of(event, flow) for event in self.handler.reads})
        if len(topics) != 1:
            raise ConfigurationError(f"{place}: an agent reads one topic; its types lie on {', '.join(topics)}")
        reads = {made.writer.name: made for made in (contract(event, flow) for event in self.handler.reads)}
        emitted: tuple[type[Event], ...] = (*self.handler.emits, JobFailed, JobDeadLettered)
        emits = {event: contract(event, flow) for event in emitted}
        return Wiring(self, self.handler, topics[0], reads, emits)


@dataclass(frozen=True, slots=True)
class Handler:
    """The user's function and what its annotations say."""

    function: Callable[..., Any]
    reads: tuple[type[Event], ...]
    emits: tuple[type[Event], ...]
    is_async: bool
    takes_context: bool


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
        return [*self.reads.values(), *self.emits.values()]

    @property
    def writes(self) -> set[str]:
        """Every topic that a handling may write to."""
        return {self.agent.dead_topic, *(contract.topic for contract in self.emits.values())}


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


def _read_handler(agent: Agent, function: Callable[..., Any]) -> Handler:
    place = _place(function)
    try:
        hints = get_type_hints(function)
    except NameError as error:
        raise ConfigurationError(f"{place}: annotation not found: {error}") from error
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) not in (1, 2):
        raise ConfigurationError(
            f"{place}: a handler takes an event and, if it wants one, a context; found {len(parameters)} parameters"
        )
    missing = [name for name in [*parameters, "return"] if name not in hints]
    if missing:
        raise ConfigurationError(
            f"{place}: no annotation for {missing[0]!r}; topics and types come from the annotations"
        )
    reads = _events(hints[parameters[0]], place, "reads")
    emits = _events(_element(hints["return"]), place, "emits")
    if not reads:
        raise ConfigurationError(
            f"{place}: {parameters[0]!r} is no event; expected a subclass of Event, or a union of some"
        )
    if inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"{place}: an async generator would emit before it has ended; return a list")
    is_async = inspect.iscoroutinefunction(function)
    if len(parameters) == 2:
        _check_context(hints[parameters[1]], is_async, place)
    if is_async and agent.inline:
        raise ConfigurationError(f"{place}: inline=True is for plain functions; this one is async")
    if is_async and agent.cpu:
        raise ConfigurationError(f"{place}: cpu is for plain functions, which run in processes; this one is async")
    return Handler(function, reads, emits, is_async, len(parameters) == 2)


def _check_context(hint: Any, is_async: bool, place: str) -> None:
    expected = Context if is_async else BlockingContext
    if (get_origin(hint) or hint) is not expected:
        kind = "an async" if is_async else "a plain"
        raise ConfigurationError(f"{place}: {kind} handler's second parameter is a {expected.__name__}")


def _element(hint: Any) -> Any:
    """The event types inside `list[…]`, `tuple[…, ...]` and the like, or the hint itself."""
    origin = get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return Union[tuple(arg for arg in get_args(hint) if arg is not Ellipsis)]  # noqa: UP007  built at run time
    if origin in (Union, types.UnionType):
        return Union[tuple(_element(arg) for arg in get_args(hint))]  # noqa: UP007  built at run time
    return hint


def _events(hint: Any, place: str, verb: str) -> tuple[type[Event], ...]:
    found: Sequence[Any] = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    events = [kind for kind in found if kind is not type(None)]
    for kind in events:
        if not (isinstance(kind, type) and issubclass(kind, Event)):
            raise ConfigurationError(f"{place}: {verb} {getattr(kind, '__name__', kind)!r}, which is no Event")
    return tuple(events)


def _place(function: Callable[..., Any]) -> str:
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno} {function.__name__}"
