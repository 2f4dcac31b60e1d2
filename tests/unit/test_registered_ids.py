"""What an id of the Schema Registry means to a reader that knows a schema much like it already."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from pydantic import AwareDatetime, SecretStr

from farandole import Event, ids, topics
from farandole.contracts import codec, framing, publishing, schema_log
from farandole.contracts.codec import contract, decode
from farandole.contracts.envelope_fields import Schema
from farandole.contracts.lookup import Schemas
from farandole.envelope import Emitter, begin
from farandole.errors import ConfigurationError, Poison
from farandole.settings import Settings
from tests.unit.test_registry_answers import PAGE, answering


class Due(Event, topic="jobs.due", stage="due", ingest=True):
    at: AwareDatetime


OURS = contract(Due, "jobs")


@pytest.fixture(autouse=True)
def _without_a_registry_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCHEMA_REGISTRY_URL", raising=False)  # it would win over what a test sets


def schemas(address: str) -> Schemas:
    return Schemas(Settings().model_copy(update={"schema_registry_url": SecretStr(f"http://{address}")}))


def as_registered(schema: Schema) -> bytes:
    return json.dumps({"schema": json.dumps(schema)}).encode()


def test_an_id_that_no_registry_gives_is_poison_whatever_is_answered() -> None:
    """Confluent's answers an id above 2^31 as it does a wrong path, which a reader waits out."""
    for number in (2**31, 2**32 - 1):
        with answering(404, *PAGE) as address:
            found = schemas(address)
            found.learn([framing.confluent(number)])
            with pytest.raises(Poison, match=str(number)) as poison:
                found.writer(framing.confluent(number))
        assert poison.value.cause == "unknown_schema"


def test_a_schema_of_other_units_is_not_taken_for_ours_though_its_fingerprint_is_the_same() -> None:
    theirs = copy.deepcopy(OURS.writer.schema)
    theirs["fields"][-1]["type"]["logicalType"] = "timestamp-millis"
    for said in ("topic", "stage", "ingest"):
        theirs.pop(said)
    assert codec.writer(theirs).fingerprint == OURS.writer.fingerprint

    with answering(200, as_registered(theirs)) as address:
        found = schemas(address)
        found.add(OURS.writer)
        found.learn([framing.confluent(7)])
        written = found.writer(framing.confluent(7))
        assert found.meaning(written) is OURS.writer
    due = Due(at=datetime(2026, 1, 1, tzinfo=UTC))
    value = OURS.registered(7).encode(begin(ids.new_trace_id(), Emitter("client"), "jobs.Due"), due)
    with pytest.raises(Poison, match="field at: written as timestamp-millis, and read as timestamp-micros"):
        decode(value, written, OURS.writer)


def test_a_schema_that_the_registry_refuses_is_nobodys_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    monkeypatch.setattr(schema_log, "publish", lambda _settings, contracts: written.extend(contracts))
    monkeypatch.setattr(topics, "missing", lambda _settings, _names: [])
    for status, count in ((404, 0), (200, 2)):
        body = (
            b'{"error_code": 40401, "message": "none"}' if status == 404 else b'{"id": 7, "subject": "s", "version": 1}'
        )
        with answering(status, body) as address:
            settings = Settings(
                schema_registry_url=SecretStr(f"http://{address}"), register_schemas=False, create_topics=False
            )
            with suppress(ConfigurationError):
                publishing.publish(settings, [Due])
        assert len(written) == count


def test_an_older_version_that_is_met_by_its_id_does_not_become_the_latest() -> None:
    older = OURS.writer.schema | {"stage": "before"}
    with answering(200, as_registered(older)) as address:
        found = schemas(address)
        found.add(OURS.writer)
        found.learn([framing.confluent(7)])
        assert found.latest("jobs.Due") is OURS.writer
