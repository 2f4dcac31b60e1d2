"""What the broker is asked: offsets and members of groups, ends and ids of topics. Blocking, bounded; a client a question."""

from __future__ import annotations

import struct
import threading
import warnings
from collections.abc import Iterable

from farandole.kafka import (
    ANSWER,
    AdminClient,
    ConfigResource,
    Consumer,
    KafkaError,
    KafkaException,
    OffsetSpec,
    TopicCollection,
    TopicPartition,
    admin,
    log,
)
from farandole.settings import Settings

warnings.filterwarnings("ignore", message=r"list_groups\(\) is deprecated", category=DeprecationWarning)


def committed(
    settings: Settings, group: str, places: list[tuple[str, int]], *, stable: bool = True
) -> dict[tuple[str, int], TopicPartition]:
    """A group's offsets and their metadata, asked from outside; the offset is -1001 where there is none.

    `stable`: not before a pending transaction is decided (_TIMED_OUT meanwhile); else those decided last. A client is made
    for each question: one that was alive while the broker was away may never find it again. A consumer, not an admin
    client, whose answer that comes late can end the process (a failed assertion in librdkafka 2.16).
    """
    client = Consumer(
        {
            "bootstrap.servers": settings.brokers,
            "group.id": group,
            "isolation.level": "read_committed" if stable else "read_uncommitted",
            "enable.auto.commit": False,
        },
        logger=log,
    )
    try:
        found = client.committed([TopicPartition(*place) for place in places], timeout=ANSWER / 4)
    finally:
        threading.Thread(target=client.close, name="close-asker", daemon=True).start()  # it may hang
    for place in found:
        if place.error:
            raise KafkaException(place.error)
    return {(place.topic, place.partition): place for place in found}


def unheld(settings: Settings, group: str, topics: Iterable[str]) -> tuple[set[tuple[str, int]], list[str]]:
    """The partitions of these topics that no member of the group holds, and the members' ids (each an instance name, and
    more); nothing while the group shares out.

    By an older request than describing the group: an admin client whose answer comes late, as while a broker restarts, can
    end the process.
    """
    client = admin(settings)
    known = client.list_topics(timeout=ANSWER / 4).topics
    found = client.list_groups(group, timeout=ANSWER / 4)
    if not found or found[0].error or found[0].state != "Stable" or not found[0].members:
        return set(), []
    there = {(name, number) for name in topics if name in known for number in known[name].partitions}
    held = [_assigned(member.assignment or b"") for member in found[0].members]
    return there.difference(*held), [member.id or "" for member in found[0].members]


def _assigned(data: bytes) -> set[tuple[str, int]]:
    """The partitions in a member's assignment, as the consumer protocol writes it: version, then topics with partitions."""
    found: set[tuple[str, int]] = set()
    if not data:
        return found
    (topics,) = struct.unpack_from(">i", data, 2)
    at = 6
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        at += 2 + length
        (count,) = struct.unpack_from(">i", data, at)
        found |= {(name, number) for number in struct.unpack_from(f">{count}i", data, at + 4)}
        at += 4 + 4 * count
    return found


def check_leaders(settings: Settings, topics: Iterable[str]) -> None:
    """Return when the broker answers and each partition of `topics` has a leader. Raises KafkaException when not.

    A producer that learns of a partition without a leader may never learn of the next one (librdkafka 5430).
    """
    known = admin(settings).list_topics(timeout=1.0).topics
    for name in topics:
        for number, partition in (known[name].partitions if name in known else {}).items():
            if partition.leader < 0:
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"{name} [{number}] has no leader"))


def _awake(settings: Settings) -> AdminClient:
    """A client to which the broker has answered: a request that finds no broker, and times out, can end the process."""
    client = admin(settings)
    client.list_topics(timeout=ANSWER / 4)
    return client


def bounds(settings: Settings, places: list[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
    """The first offset that is there and the one past the last; partitions that do not exist are left out."""
    client = _awake(settings)
    there = client.list_topics(timeout=ANSWER).topics
    known = [place for place in places if place[0] in there and place[1] in there[place[0]].partitions]
    found: list[dict[tuple[str, int], int]] = []
    for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):  # type: ignore[no-untyped-call]
        asked = {TopicPartition(*place): spec for place in known}
        futures = client.list_offsets(asked, request_timeout=ANSWER) if asked else {}
        found.append({(at.topic, at.partition): future.result().offset for at, future in futures.items()})
    return {place: (found[0][place], found[1][place]) for place in known}


def topic_ids(settings: Settings, topics: Iterable[str]) -> dict[str, str]:
    """The broker's id of each topic: a deleted and recreated topic has another, which offsets alone do not show."""
    client = _awake(settings)  # a name of its own: its futures fail once it is collected
    futures = client.describe_topics(TopicCollection(list(topics)), request_timeout=ANSWER)
    return {name: str(future.result().topic_id) for name, future in futures.items()}


def broker_setting(settings: Settings, name: str) -> str | None:
    """What one broker of the cluster says of one of its settings; None when it does not tell."""
    client = _awake(settings)
    node = next(iter(client.list_topics(timeout=ANSWER).brokers))
    for future in client.describe_configs(
        [ConfigResource(ConfigResource.Type.BROKER, str(node))], request_timeout=ANSWER
    ).values():
        entry = future.result().get(name)
        return str(entry.value) if entry else None
    return None
