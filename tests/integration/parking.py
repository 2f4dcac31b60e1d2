"""What the tests of parked records share: an event whose schema comes late, and how records get parked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from farandole import Event, topics
from farandole.contracts import codec, schema_log
from farandole.contracts.schema_log import SCHEMA_TOPIC
from farandole.kafka import Record
from farandole.settings import Settings
from tests.integration.projection_tables import Folder, places, prepare


class Late(Event, topic="jobs.done", stage="late"):
    """An event whose schema is published after its first records."""

    text: str


def prepared(settings: Settings) -> None:
    """Tables, and the topic of the schemas."""
    prepare(settings)
    topics.ensure(settings, [one for one in topics.of_events(settings, ()) if one.name == SCHEMA_TOPIC])


def park(settings: Settings, records: Sequence[Record]) -> None:
    """Fold the records as a projector would: those that it cannot read are parked."""
    folder = Folder(settings, "a", places(records, settings))
    with closing(folder.store):
        folder.fold(records)


def publish(settings: Settings) -> None:
    schema_log.publish(settings, [codec.contract(Late, settings.flow)])
