"""Leave partitions with nobody: two static members, killed between the halves of a cooperative hand-over.

    python stranded.py BROKERS GROUP TOPIC…

Prints "stranded" when it is about to end.
"""

import os
import sys
import threading

from confluent_kafka import Consumer

brokers, group, *topics = sys.argv[1:]


def member(number: int) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": group,
            "group.instance.id": f"{group}.{number}",
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": 30000,
            "auto.offset.reset": "earliest",
        }
    )


def end(*_: object) -> None:
    print("stranded", flush=True)
    os._exit(0)


def follow() -> None:
    second.subscribe(topics)
    while True:
        second.poll(0.1)


first, second = member(0), member(1)
joined = threading.Event()
first.subscribe(topics, on_assign=lambda *_: joined.set(), on_revoke=end)
while not joined.is_set():
    first.poll(0.1)
threading.Thread(target=follow, daemon=True).start()
while True:
    first.poll(0.1)
