"""What answers late or only in part: a topic's id, a database that hangs. The projector waits, and can be told to go."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from farandole import asking, kafka, postgres
from farandole.errors import ExitCode, Unreachable
from farandole.postgres import Connection
from farandole.projector import loop, outages
from farandole.projector.store import Place, Store
from farandole.settings import Settings
from tests import oracle
from tests.eventually import eventually
from tests.integration.projection_service import make_topics, process, running, send
from tests.integration.projection_tables import one, prepare
from tests.journeys import Submitted, facts, new_fact

HELD = "SELECT count(*) FROM projector_offset WHERE owner IS NOT NULL"
FOLDED = "SELECT count(*) FROM event_log"


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    make_topics(farandole_settings)
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


def test_a_topic_whose_id_nobody_told_is_known_later_and_one_that_is_gone_hides_no_other(
    farandole_settings: Settings, database: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, asked = asking.topic_ids, 0

    def refuse(settings: Settings, names: list[str]) -> dict[str, str]:
        nonlocal asked
        asked += 1
        if asked < 3 or farandole_settings.topic("jobs.done") in names:
            raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError.UNKNOWN_TOPIC_OR_PART))
        return ask(settings, names)

    monkeypatch.setattr(asking, "topic_ids", refuse)
    monkeypatch.setattr(loop, "CHECK", 0.5)
    known = "SELECT count(DISTINCT topic) FROM projector_offset WHERE topic_id IS NOT NULL"
    with running(farandole_settings):
        eventually(lambda: one(database, HELD) > 0)
        eventually(
            lambda: one(database, known) == one(database, "SELECT count(DISTINCT topic) - 1 FROM projector_offset")
        )
    assert (
        one(database, "SELECT count(*) FROM projector_offset WHERE topic = 'jobs.done' AND topic_id IS NOT NULL") == 0
    )


def test_an_outage_while_a_gap_is_noted_is_waited_out(
    farandole_settings: Settings, database: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    note = Store.set_gap
    refused: list[Place] = []

    def set_gap(store: Store, place: Place, epoch: int, reason: str) -> None:
        if not refused:
            refused.append(place)
            raise postgres.psycopg.OperationalError("the connection broke")
        note(store, place, epoch, reason)

    monkeypatch.setattr(Store, "set_gap", set_gap)
    database.execute("INSERT INTO projector_offset (topic, partition, next_offset) VALUES ('jobs.done', 0, 4711)")
    with running(farandole_settings):
        eventually(lambda: one(database, "SELECT count(*) FROM projector_offset WHERE gap IS NOT NULL") == 1)
    assert refused == [("jobs.done", 0)]


@pytest.mark.parametrize(
    ("cause", "who"),
    [(postgres.psycopg.OperationalError("gone"), "the database"), (kafka.KafkaException("gone"), "Kafka")],
)
def test_who_is_away_is_said_also_when_the_client_said_it_first(cause: Exception, who: str) -> None:
    wrapped = Unreachable("it does not answer")
    wrapped.__cause__ = cause
    assert (outages.away(cause), outages.away(wrapped)) == (who, who)


def test_a_database_that_hangs_is_waited_for_and_nothing_is_lost_or_doubled(
    farandole_settings: Settings, database: Connection[Any], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(loop, "SLOW", 0.2)
    chosen = facts(81, 200)
    happened = [fact.happened for fact in chosen]
    with running(farandole_settings):
        eventually(lambda: one(database, HELD) > 0)
        with postgres.connect(farandole_settings) as other, other.transaction():
            other.execute("LOCK TABLE event_log IN ACCESS EXCLUSIVE MODE")
            send(farandole_settings, chosen)
            eventually(lambda: "slow_database" in caplog.text)
            send(farandole_settings, chosen[:50])
        eventually(lambda: one(database, FOLDED) == len(oracle.once(happened)))
        send(farandole_settings, [new_fact(Submitted)])
        eventually(lambda: one(database, FOLDED) == len(oracle.once(happened)) + 1)
    assert "Traceback" not in caplog.text


def test_a_second_signal_leaves_at_once_though_the_database_hangs(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    with process(farandole_settings) as child, postgres.connect(farandole_settings) as other, other.transaction():
        eventually(lambda: one(database, HELD) > 0)
        other.execute("LOCK TABLE event_log IN ACCESS EXCLUSIVE MODE")
        send(farandole_settings, [new_fact(Submitted)])
        eventually(lambda: one(database, "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0)
        child.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1)
        child.send_signal(signal.SIGTERM)
        assert child.wait(10) == ExitCode.INTERRUPTED
