"""Events as a user declares them: a payload class with its topic, its stage and whether it ends the job."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from farandole.contracts.avro import is_name
from farandole.contracts.fields.annotations import kind_of
from farandole.errors import ConfigurationError

Terminal = Literal["done", "failed"]


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the class arguments of an event say; kept apart from its fields, so that a field may be called `stage`."""

    topic: str
    stage: str | None = None
    terminal: Terminal | None = None
    blocks: bool = False
    ingest: bool = False
    partitions: int | None = None
    retention_days: float | None = None
    name: str | None = None
    aliases: tuple[str, ...] = ()
    view: bool = False


class Event(BaseModel):
    """The base of every payload: immutable, compared by value, strict about unknown fields, NaN and time zones.

    Class arguments:
        topic: the topic it is emitted to, `<flow>.<name>`; `.<name>` stands for the flow of the settings.
        stage: where a job is once this happened; None leaves the job's stage as it was.
        terminal: "done" or "failed" when the job ends with it.
        blocks: the job waits for a person after it.
        ingest: users produce it; what `farandole submit` and `Client.submit` take when no type is named.
        partitions, retention_days: of its topic, where they differ from the settings.
        name: its name in Avro, where it is not the class's.
        aliases: the names it had before, the first one first: events of those names are read as this one.
        view: a smaller class of an event that others define, under its `name`: read, never emitted; it has no .avsc.

    >>> class Parked(Event, topic="jobs.parked", stage="parked"):
    ...     bay: int
    >>> Parked(bay=3)
    Parked(bay=3)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    __event__: ClassVar[Declaration]

    def __init_subclass__(
        cls,
        topic: str = "",
        stage: str | None = None,
        terminal: Terminal | None = None,
        blocks: bool = False,
        ingest: bool = False,
        partitions: int | None = None,
        retention_days: float | None = None,
        name: str | None = None,
        aliases: tuple[str, ...] = (),
        view: bool = False,
        **kwargs: Any,
    ) -> None:
        unknown = [name for name in kwargs if name not in ConfigDict.__annotations__]
        if unknown:
            raise ConfigurationError(
                f"event {cls.__qualname__}: unknown option {unknown[0]!r}; expected {', '.join(Declaration.__slots__)}"
            )
        super().__init_subclass__(**kwargs)
        if not topic:
            raise ConfigurationError(
                f"event {cls.__qualname__}: topic is missing; expected class {cls.__name__}(Event, topic='…')"
            )
        if terminal not in (None, "done", "failed"):
            raise ConfigurationError(f"event {cls.__qualname__}: terminal is {terminal!r}; expected 'done' or 'failed'")
        _check_options(cls.__qualname__, topic=topic, stage=stage, partitions=partitions, retention_days=retention_days)
        _check_names(cls.__qualname__, name, aliases)
        if (own := name or cls.__name__) in aliases:
            raise ConfigurationError(f"event {cls.__qualname__}: {own!r} is its name, and cannot be an earlier one")
        cls.__event__ = Declaration(
            topic, stage, terminal, blocks, ingest, partitions, retention_days, name, tuple(aliases), view
        )

    @classmethod
    def avro_name(cls) -> str:
        """Its name in Avro, without the namespace, which is the flow's."""
        return cls.__event__.name or cls.__name__

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a field that has no faithful form on the wire; this hook is in every pydantic 2, the next one is not."""
        super().__pydantic_init_subclass__(**kwargs)
        if cls.__pydantic_complete__:
            kind_of(cls)

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        """The same for a class that names later ones, as soon as these are known."""
        super().__pydantic_on_complete__()
        if "__event__" in cls.__dict__:
            kind_of(cls)


def _check_options(event: str, *, topic: object, stage: object, partitions: object, retention_days: object) -> None:
    """Raise ConfigurationError for a value that would be refused, or misunderstood, where topics and projections are made."""
    days_fit = isinstance(retention_days, int | float) and 0 < retention_days < math.inf
    for option, fits, value, expected in (
        ("topic", isinstance(topic, str), topic, "a text"),
        ("stage", stage is None or isinstance(stage, str), stage, "a text"),
        ("partitions", partitions is None or (type(partitions) is int and partitions > 0), partitions, "1 or more"),
        ("retention_days", retention_days is None or days_fit, retention_days, "a number above 0"),
    ):
        if not fits:
            raise ConfigurationError(f"event {event}: {option} is {value!r}; expected {expected}")


def _check_names(event: str, name: str | None, aliases: object) -> None:
    if isinstance(aliases, str):
        raise ConfigurationError(f"event {event}: aliases is {aliases!r}; expected a tuple, such as ({aliases!r},)")
    if not isinstance(aliases, tuple | list):
        raise ConfigurationError(f"event {event}: aliases is {aliases!r}; expected a tuple of names")
    for given in (*([] if name is None else [name]), *aliases):
        if not (isinstance(given, str) and is_name(given)):
            raise ConfigurationError(f"event {event}: {given!r} is no Avro name; expected letters, digits and _")


def personal(default: Any = ..., **kwargs: Any) -> Any:
    """A field that holds personal data; marked so in the schema, for masking and erasure.

    >>> class Joined(Event, topic="jobs.joined", stage="joined"):
    ...     name: str = personal()
    """
    return Field(default, json_schema_extra={"personal": True}, **kwargs)


class JobFailed(Event, topic=".failed", stage="failed", terminal="failed"):
    """A handler decided that the job ends here (`Fail`)."""

    agent: str
    reason: str = Field(description="a stable word, from the list the agent declares")
    detail: str | None = None


class JobDeadLettered(Event, topic=".dead_lettered", blocks=True):
    """A record could not be handled; it lies raw in `dead_letter_topic`. The job is blocked until a person decides."""

    agent: str
    cause: str = Field(description="a stable word: undecodable, invalid, rejected, attempts, …")
    error: str = Field(description="the first error, for people; at most 2,000 characters")
    attempts: int
    dead_letter_topic: str
    origin_topic: str
    origin_partition: int
    origin_offset: int


class JobRedriven(Event, topic=".redriven"):
    """A person gave a dead letter back to its agent: the job goes on under a higher run."""

    agent: str
    dead_event_id: str = Field(description="the event_id of the JobDeadLettered that this answers")
    reason: str | None = None


class JobDiscarded(Event, topic=".discarded", stage="discarded", terminal="failed"):
    """A person decided that a dead letter is not worth another try: the job ends here."""

    agent: str
    dead_event_id: str = Field(description="the event_id of the JobDeadLettered that this answers")
    reason: str | None = None
