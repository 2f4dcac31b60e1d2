"""A new group starts at the beginning, once; a group that has lost its offset, or its topic, stops and says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]
from pydantic import SecretStr

from farandole import gaps, kafka, migrate, postgres
from farandole.errors import FarandoleError, Stopped
from farandole.outage import Outage
from farandole.settings import Settings
from farandole.worker import known
from farandole.worker.known import Positions
from tests.eventually import eventually
from tests.kafka_log import KafkaLog

AGENT, TOPIC, PARTITIONS = "echo", "jobs.heard", 2


class Group:
    """An agent's group on a topic of its own: members join it as a worker does, with nothing of a worker but `Positions`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.admin = AdminClient({"bootstrap.servers": settings.brokers})
        self.log = KafkaLog(settings.brokers, settings.namespace)
        migrate.migrate(settings)
        self.make()

    def make(self) -> None:
        """The topic, and a record in each partition of it."""
        name = self.settings.topic(TOPIC)
        eventually(lambda: self._created(name), f"{name} can be made")
        eventually(lambda: self.log.exists(TOPIC), f"{name} is there")
        self.write(1)

    def _created(self, name: str) -> bool:
        try:
            self.admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(10)
        except kafka.KafkaException as failure:  # the old one is not gone yet
            assert kafka.error_of(failure).code() == kafka.KafkaError.TOPIC_ALREADY_EXISTS
            return False
        return True

    def remove(self) -> None:
        name = self.settings.topic(TOPIC)
        self.admin.delete_topics([name])[name].result(10)
        eventually(lambda: not self.log.exists(TOPIC), f"{name} is gone")

    def write(self, count: int) -> None:
        """`count` records more in each partition."""
        for partition in range(PARTITIONS):
            self.log.write(TOPIC, [(None, b"x")] * count, partition=partition)

    def forget_offsets(self) -> None:
        """What Kafka does by itself a week after the last member has left."""
        group = self.settings.group(AGENT)
        self.admin.delete_consumer_groups([group])[group].result(10)

    @contextmanager
    def member(self) -> Iterator[tuple[kafka.Consumer, dict[int, int]]]:
        """A member that holds all partitions, and where it starts in each. Raises what `Positions` raised."""
        positions = Positions(self.settings, AGENT, lambda: Outage("the test", 20))
        consumer = kafka.consumer(self.settings, self.settings.group(AGENT))
        starts: dict[int, int] = {}
        failures: list[BaseException] = []

        def on_assign(member: kafka.Consumer, places: list[TopicPartition]) -> None:
            try:
                found = positions.checked(member, member.committed(places, timeout=10)) if places else []
                member.incremental_assign(found)
                starts.update({part.partition: part.offset for part in found})
            except Exception as failure:  # noqa: BLE001  the client would swallow it
                failures.append(failure)

        def joined() -> bool:
            consumer.poll(0.1)
            if failures:
                raise failures[0]
            return len(starts) == PARTITIONS

        consumer.subscribe([self.settings.topic(TOPIC)], on_assign=on_assign)
        try:
            eventually(joined, "the member holds its partitions")
            yield consumer, starts
        finally:
            consumer.close()

    def commit(self, consumer: kafka.Consumer, offset: int) -> None:
        places = [TopicPartition(self.settings.topic(TOPIC), partition, offset) for partition in range(PARTITIONS)]
        consumer.commit(offsets=places, asynchronous=False)

    def committed(self) -> dict[int, int]:
        return self.log.committed(AGENT, TOPIC)

    def listed(self) -> list[gaps.Gap]:
        with postgres.connect(self.settings) as connection:
            kept = gaps.known(connection)
        return [gaps.Gap(*place, one.gap) for place, one in kept.items() if one.gap]

    def accept(self, at: str) -> dict[gaps.Gap, int]:
        found = self.listed()
        with postgres.connect(self.settings) as connection:
            return gaps.accept(self.settings, connection, found, at)


@pytest.fixture
def group(farandole_settings: Settings) -> Group:
    return Group(farandole_settings)


def everywhere(offset: int) -> dict[int, int]:
    return dict.fromkeys(range(PARTITIONS), offset)


def test_a_new_group_starts_at_the_beginning_and_commits_that(group: Group) -> None:
    with group.member() as (_, starts):
        assert starts == everywhere(0)
    assert group.committed() == everywhere(0)


def test_a_new_group_starts_where_the_log_begins(group: Group) -> None:
    group.write(5)
    places = [TopicPartition(group.settings.topic(TOPIC), partition, 3) for partition in range(PARTITIONS)]
    for deleted in group.admin.delete_records(places).values():
        deleted.result(10)
    with group.member() as (_, starts):
        assert starts == everywhere(3)


def test_a_known_group_goes_on_from_its_offset(group: Group) -> None:
    with group.member() as (consumer, _):
        group.commit(consumer, 1)
    with group.member() as (_, starts):
        assert starts == everywhere(1)
    assert group.listed() == []


@pytest.mark.parametrize(("at", "offset"), [("earliest", 0), ("latest", 3), ("2", 2)])
def test_a_known_group_whose_offset_is_gone_stops_until_a_person_decides(group: Group, at: str, offset: int) -> None:
    # Given a group that was here, and had committed nothing of its own yet
    with group.member():
        pass
    group.write(2)
    group.forget_offsets()

    # Then it does not begin anew in silence, however often it is started
    for _ in range(2):
        with pytest.raises(Stopped, match=r"no longer in Kafka.*farandole gaps accept echo"), group.member():
            pass
    assert [(gap.agent, gap.topic, gap.partition) for gap in group.listed()] == [(AGENT, TOPIC, 0), (AGENT, TOPIC, 1)]

    # When a person has decided, it goes on there, and from then on as ever
    assert set(group.accept(at).values()) == {offset}
    with group.member() as (consumer, starts):
        assert starts == everywhere(offset)
        assert group.committed() == everywhere(offset)
        group.write(1)
        group.commit(consumer, 4)
    with group.member() as (_, starts):
        assert starts == everywhere(4)


def test_what_follows_from_a_gap_does_not_hide_it(group: Group) -> None:
    with group.member():
        pass
    group.forget_offsets()
    with pytest.raises(Stopped), group.member():
        pass
    positions = Positions(group.settings, AGENT, lambda: Outage("the test", 20))
    positions.gap(group.settings.topic(TOPIC), 0, "the log does not have offset None")
    assert {gap.reason for gap in group.listed()} == {
        "its offset, 0 when last seen, is no longer in Kafka: offsets of a group without members expire"
    }
    positions.gap(group.settings.topic(TOPIC), 7, "the log does not have offset 5")
    assert [gap.reason for gap in group.listed() if gap.partition == 7] == ["the log does not have offset 5"]


def test_a_topic_that_was_made_again_stops_its_reader_even_where_the_new_log_is_longer(group: Group) -> None:
    with group.member() as (consumer, _):
        group.commit(consumer, 1)
    group.remove()
    group.make()
    group.write(4)
    with pytest.raises(Stopped, match="deleted and made again"), group.member():
        pass
    group.accept("earliest")
    with group.member() as (_, starts):
        assert starts == everywhere(0)
    assert group.listed() == []


def test_partitions_that_are_added_are_read_from_their_beginning(group: Group) -> None:
    with group.member() as (consumer, _):
        group.commit(consumer, 1)
    name = group.settings.topic(TOPIC)
    group.admin.create_partitions([NewPartitions(name, 3)])[name].result(10)
    positions = Positions(group.settings, AGENT, lambda: Outage("the test", 20))
    consumer = kafka.consumer(group.settings, group.settings.group(AGENT))
    try:
        found = positions.checked(consumer, consumer.committed([TopicPartition(name, p) for p in range(3)], timeout=10))
        assert [part.offset for part in found] == [1, 1, 0]
    finally:
        consumer.close()


def test_an_offset_that_the_log_does_not_have_is_refused(group: Group) -> None:
    with group.member():
        pass
    group.forget_offsets()
    with pytest.raises(Stopped), group.member():
        pass
    with pytest.raises(FarandoleError, match="has offsets 0 to 1; 99 is not among them"):
        group.accept("99")
    assert len(group.listed()) == PARTITIONS


async def test_a_topic_that_is_made_again_while_it_is_read_is_noticed(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "EVERY", 0.05)
    positions = Positions(group.settings, AGENT, lambda: Outage("the test", 20))
    consumer = kafka.consumer(group.settings, group.settings.group(AGENT))
    try:
        positions.checked(consumer, [TopicPartition(group.settings.topic(TOPIC), 0, 1)])
        group.remove()
        group.make()
        with pytest.raises(Stopped, match="deleted and made again"):
            await positions.watch()
    finally:
        consumer.close()


def test_an_outage_of_the_database_is_sat_out_and_bounded(group: Group) -> None:
    nowhere = SecretStr("postgresql://nobody@127.0.0.1:1/nothing")
    away = group.settings.model_copy(update={"database_url": nowhere})
    tries: list[BaseException] = []

    class Counted(Outage):
        def endure(self, failure: BaseException) -> float:
            tries.append(failure)
            return min(0.01, super().endure(failure))

    positions = Positions(away, AGENT, lambda: Counted("the test", 0.2))
    consumer = kafka.consumer(group.settings, group.settings.group(AGENT))
    try:
        with pytest.raises(Stopped, match="an outage has lasted"):
            positions.checked(consumer, [TopicPartition(group.settings.topic(TOPIC), 0, 1)])
    finally:
        consumer.close()
    assert len(tries) > 1
