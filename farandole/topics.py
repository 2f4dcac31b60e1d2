"""The topics a project needs, as declared: creates what is missing, shows what differs, never alters or destroys."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from farandole import kafka
from farandole.agent import Agent
from farandole.contracts.deriving import topic_of
from farandole.contracts.schema_log import SCHEMA_TOPIC
from farandole.errors import ConfigurationError, ExitCode, FarandoleError, Unreachable
from farandole.event import Event
from farandole.flow import RUNTIME_EVENTS
from farandole.kafka import KafkaError, KafkaException
from farandole.settings import Settings

#: Dead letters are few; one partition keeps them in order.
DEAD_PARTITIONS = 1

#: The group balances the number of partitions, whatever lies in them: as many again for wakes, and of two workers one
#: would be given all the events, the other all the wakes.
WAKE_PARTITIONS = 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """A topic as declared; `name` is without the namespace, `config` holds Kafka's own topic settings."""

    name: str
    partitions: int
    config: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One finding: a topic that is "ok", was "created", is "missing", or a setting of it that has drifted."""

    topic: str  #: as the broker calls it
    status: str  #: ok, created, missing or drift
    setting: str = ""
    declared: str = ""
    found: str = ""


def of_agents(settings: Settings, agents: Iterable[Agent]) -> list[Wanted]:
    """Everything these agents read and emit, their dead letters, and the schema topic."""
    events: list[type[Event]] = []
    own: list[Wanted] = []
    for agent in agents:
        wiring = agent.wiring(settings.flow)
        events += [*wiring.handler.reads, *wiring.emits]
        config = {"cleanup.policy": "delete", "max.message.bytes": str(kafka.MAX_DEAD_LETTER_BYTES)}
        own.append(Wanted(agent.dead_topic, DEAD_PARTITIONS, config | {"retention.ms": "-1"}))
        days = {"retention.ms": str(int(settings.retention_days * 86_400_000))}
        own.append(Wanted(agent.wake_topic, WAKE_PARTITIONS, config | days))
    return [*of_events(settings, events), *own]


def of_events(settings: Settings, events: Iterable[type[Event]]) -> list[Wanted]:
    """The topics of these event classes, of the runtime's own events, and the schema topic."""
    partitions: dict[str, int | None] = {}
    days: dict[str, float | None] = {}
    for event in (*events, *RUNTIME_EVENTS):
        topic, declared = topic_of(event, settings.flow), event.__event__
        _agree(partitions, topic, "partitions", declared.partitions)
        _agree(days, topic, "retention_days", declared.retention_days)
    schemas = Wanted(SCHEMA_TOPIC, 1, {"cleanup.policy": "compact"})
    return [schemas, *(_event_topic(settings, topic, partitions[topic], days[topic]) for topic in sorted(partitions))]


def _event_topic(settings: Settings, topic: str, partitions: int | None, days: float | None) -> Wanted:
    retention = int((days or settings.retention_days) * 86_400_000)
    return Wanted(
        topic, partitions or settings.partitions, {"cleanup.policy": "delete", "retention.ms": str(retention)}
    )


def _agree(known: dict[str, Any], topic: str, setting: str, value: Any) -> None:
    """Several event types may share a topic; at most one of them says how it is made, or all say the same."""
    before = known.setdefault(topic, None)
    if before is not None and value is not None and before != value:
        raise ConfigurationError(f"topic {topic}: its event classes declare {setting}={before} and {setting}={value}")
    known[topic] = before if value is None else value


def ensure(settings: Settings, wanted: Sequence[Wanted]) -> list[Row]:
    """Create the missing ones and wait until the broker shows them; one row a topic, more where it drifted.

    Safe to run by many at once. Raises Unreachable without a broker, FarandoleError when the broker says no.
    """
    admin = kafka.admin(settings)
    there, nodes = _partitions(settings, admin)
    missing = [topic for topic in wanted if settings.topic(topic.name) not in there]
    if missing and nodes < settings.replication:
        raise FarandoleError(
            f"the broker has {nodes} node{'s' * (nodes > 1)}, topics ask for {settings.replication} replicas: "
            f"set FARANDOLE_REPLICATION to {nodes} or less"
        )
    if missing:
        _create(settings, admin, missing)
    created = {topic.name for topic in missing}
    return [
        Row(row.topic, "created") if settings.bare(row.topic) in created else row for row in compare(settings, wanted)
    ]


def compare(settings: Settings, wanted: Sequence[Wanted]) -> list[Row]:
    """The declared topics beside the broker's; changes nothing."""
    admin = kafka.admin(settings)
    there, _ = _partitions(settings, admin)
    names = [settings.topic(topic.name) for topic in wanted]
    found = _configs(admin, [name for name in names if name in there])
    rows: list[Row] = []
    for name, topic in zip(names, wanted, strict=True):
        if name not in there:
            rows.append(Row(name, "missing"))
            continue
        declared = {"partitions": str(topic.partitions), **topic.config}
        actual = {"partitions": str(there[name]), **found[name]}
        drift = [
            Row(name, "drift", key, value, actual.get(key, "?"))
            for key, value in declared.items()
            if actual.get(key) != value
        ]
        rows += drift or [Row(name, "ok")]
    return rows


def limits(settings: Settings, names: Iterable[str]) -> dict[str, int]:
    """Bytes that a batch of records may have on each of these topics, which exist; without the namespace, as `names`."""
    found = _configs(kafka.admin(settings), [settings.topic(name) for name in names])
    return {settings.bare(name): int(config["max.message.bytes"]) for name, config in found.items()}


def missing(settings: Settings, names: Iterable[str]) -> list[str]:
    """Those of `names` (without the namespace) that the broker does not have."""
    there, _ = _partitions(settings, kafka.admin(settings))
    return sorted(name for name in set(names) if settings.topic(name) not in there)


def absent(names: Iterable[str]) -> FarandoleError:
    """What is said of topics that are needed and must not be created here; `names` are the broker's."""
    return FarandoleError(
        f"topics are missing: {', '.join(names)}; create them with `farandole topics`", ExitCode.NOT_FOUND
    )


def _create(settings: Settings, admin: kafka.AdminClient, missing: list[Wanted]) -> None:
    new = [
        kafka.NewTopic(settings.topic(topic.name), topic.partitions, settings.replication, config=dict(topic.config))
        for topic in missing
    ]
    for name, future in admin.create_topics(new, operation_timeout=kafka.ANSWER, request_timeout=kafka.ANSWER).items():
        try:
            future.result()
        except KafkaException as failure:
            if kafka.error_of(failure).code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another process was faster
                raise _said_no(failure, f"topic {name} cannot be created") from failure
    _await(settings, admin, {topic.topic for topic in new})


def _await(settings: Settings, admin: kafka.AdminClient, names: set[str]) -> None:
    """A created topic is known to every broker only a moment later."""
    deadline = time.monotonic() + kafka.ANSWER
    while names - set(_partitions(settings, admin)[0]):
        if time.monotonic() > deadline:
            raise Unreachable(f"the broker does not show {sorted(names)[0]} {kafka.ANSWER:.0f} s after it was created")
        time.sleep(0.05)


def _partitions(settings: Settings, admin: kafka.AdminClient) -> tuple[dict[str, int], int]:
    """Partition counts by topic, and how many nodes the cluster has."""
    try:
        metadata = admin.list_topics(timeout=kafka.ANSWER)
    except KafkaException as failure:
        raise kafka.unreachable(settings, failure) from failure
    ready = {name: topic for name, topic in metadata.topics.items() if topic.error is None and topic.partitions}
    return {name: len(topic.partitions) for name, topic in ready.items()}, len(metadata.brokers)


def _configs(admin: kafka.AdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    asked = [kafka.ConfigResource(kafka.ConfigResource.Type.TOPIC, name) for name in names]
    futures: dict[Any, Future[Any]] = admin.describe_configs(asked, request_timeout=kafka.ANSWER)
    try:
        return {
            resource.name: {key: entry.value for key, entry in future.result().items()}
            for resource, future in futures.items()
        }
    except KafkaException as failure:
        raise _said_no(failure, "the broker does not tell its topics' settings") from failure


def _said_no(failure: KafkaException, what: str) -> FarandoleError:
    reason = kafka.error_of(failure).str()
    return Unreachable(f"{what}: {reason}") if kafka.is_outage(failure) else FarandoleError(f"{what}: {reason}")
