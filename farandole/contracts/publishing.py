"""Schemas made known to every reader before the first record written with them."""

from __future__ import annotations

from collections.abc import Iterable

from farandole import topics
from farandole.contracts import codec, schema_log
from farandole.contracts.codec import Writer
from farandole.contracts.deriving import derive
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


def publish(settings: Settings, events: Iterable[type[Event]]) -> list[Writer]:
    """Make the schemas of these events known to every reader, before the first record written with them."""
    wanted = writers(events, settings.flow)
    if settings.create_topics:
        topics.ensure(
            settings, [topic for topic in topics.of_events(settings, ()) if topic.name == schema_log.SCHEMA_TOPIC]
        )
    schema_log.publish(settings, wanted)
    return wanted
