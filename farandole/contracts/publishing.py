"""Schemas made known to every reader before the first record written with them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from farandole import topics
from farandole.contracts import codec, framing, schema_log
from farandole.contracts.codec import Contract, Writer
from farandole.contracts.deriving import derive
from farandole.contracts.registry.registry import Registry, check_subjects, subject
from farandole.event import Event
from farandole.settings import Settings


def writers(events: Iterable[type[Event]], flow: str) -> list[Writer]:
    """The schemas that records of these events may be written with; of an ingest type also the one without envelope."""
    found: list[Writer] = []
    for event in events:
        found.append(codec.contract(event, flow).writer)
        if event.__event__.ingest:
            found.append(codec.writer(derive(event, flow, envelope=False)))
    return found


def publish(
    settings: Settings, events: Iterable[type[Event]], *, registering: bool | None = None
) -> dict[type[Event], Contract]:
    """Make the schemas of these events known to every reader, before the first record written with them.

    Returns the contracts as records are to be written with them. With a Schema Registry the schemas are registered there
    too, by `registering` (default: as the settings say), or else found there. Raises Unreachable when the broker or the
    registry does not answer, ConfigurationError when the registry does not have, or refuses, a schema.
    """
    own = [event for event in events if not event.__event__.view]
    if settings.create_topics:
        topics.ensure(
            settings, [topic for topic in topics.of_events(settings, ()) if topic.name == schema_log.SCHEMA_TOPIC]
        )
    contracts = {event: codec.contract(event, settings.flow) for event in own}
    if settings.schema_registry_url:  # first: what it refuses is never the latest schema of anybody
        wanted = settings.register_schemas if registering is None else registering
        contracts = _registered(settings, contracts, registering=wanted)
    if not settings.create_topics and topics.missing(settings, {schema_log.SCHEMA_TOPIC}):
        raise topics.absent([settings.topic(schema_log.SCHEMA_TOPIC)])  # else nobody would answer, which says less
    schema_log.publish(settings, writers(own, settings.flow))
    return contracts


def _registered(
    settings: Settings, contracts: dict[type[Event], Contract], *, registering: bool
) -> dict[type[Event], Contract]:
    check_subjects(settings, contracts.values())
    with closing(Registry(settings)) as registry:
        ask = registry.register if registering else registry.find
        return {
            event: made.registered(ask(_subject(settings, made), made.writer.schema))
            for event, made in contracts.items()
        }


def place(settings: Settings, made: Contract) -> str | None:
    """Where the registry keeps a contract's schema, for people; None for one that is in the schema topic alone."""
    number = framing.id_in(made.header)
    return None if number is None else f"id {number}, subject {_subject(settings, made)}"


def _subject(settings: Settings, made: Contract) -> str:
    return subject(settings, settings.topic(made.topic), made.writer.name)
