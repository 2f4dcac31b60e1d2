"""Records that were parked while nobody had told the projector of the Schema Registry."""

from __future__ import annotations

import secrets
from contextlib import closing

from farandole import ids, parked, postgres, topics
from farandole.contracts import framing
from farandole.contracts.lookup import Schemas
from farandole.contracts.registry.registry import Registry
from farandole.contracts.schema_log import SCHEMA_TOPIC
from farandole.kafka import Record
from farandole.projector.parking import Retried, Retry
from farandole.projector.rows import Rows
from farandole.projector.store import Store
from farandole.settings import Settings
from tests.integration import projection_tables

PLACE = ("jobs.heard", 0)


def test_records_that_were_parked_before_the_registry_was_set_are_taken_up_once_it_is(
    farandole_settings: Settings, farandole_registry: str
) -> None:
    """A stranger's records, in Confluent's framing, without an envelope: what they get is what a projector gives them."""
    projection_tables.prepare(farandole_settings)
    topics.ensure(
        farandole_settings, [one for one in topics.of_events(farandole_settings, ()) if one.name == SCHEMA_TOPIC]
    )
    word = f"t{secrets.token_hex(4)}"
    schema = {"type": "record", "name": f"jobs.{word}", "fields": [{"name": "x", "type": "string"}], "stage": "heard"}
    number = Registry(farandole_settings).register(f"{word}-value", schema)
    value, topic = framing.confluent(number) + b"\x04hi", farandole_settings.topic(PLACE[0])
    records = [Record(topic, 0, offset, 1_782_863_940_000 + offset, b"k", value, []) for offset in range(2)]

    # Given a projector without the setting
    without = farandole_settings.model_copy(update={"schema_registry_url": None})
    with closing(Store(without, "a")) as store:
        epoch = store.claim([PLACE])[PLACE].epoch
        assert store.fold(Rows(Schemas(without), without).batch(records), {PLACE: 2}, {PLACE: epoch}).parked == 2

    with postgres.connect(farandole_settings) as database, closing(Retry(farandole_settings)) as again:
        # When they are tried again with it
        assert list(again.run(database, parked.Chosen(cause="unknown_schema"))) == [Retried(2, new=2)]

        # Then they are what they would have been
        rows = database.execute(
            'SELECT trace_id, stage, body, occurred_at = logged_at FROM event_log ORDER BY "offset"'
        )
        job = ids.trace_id_of_key("jobs", "k")
        assert [(str(row[0]), *row[1:]) for row in rows] == [(job, "heard", {"x": "hi"}, True)] * 2
        made = Rows(Schemas(farandole_settings), farandole_settings).batch(records).rows
        ids_of = [bytes(row[0].bytes) for row in database.execute('SELECT event_id FROM event_log ORDER BY "offset"')]
        assert all(one in row for one, row in zip(ids_of, made, strict=True))
