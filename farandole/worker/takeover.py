"""Ending the transaction that a vanished worker left undecided; else readers wait for the broker's timeout."""

from __future__ import annotations

import logging

from farandole import asking, kafka
from farandole.kafka import KafkaException
from farandole.settings import Settings
from farandole.threads import Caller
from farandole.worker.positions import Unreadable, decode

log = logging.getLogger("farandole.takeover")

#: Seconds. One call to the broker.
_CALL = 5.0


def settle(settings: Settings, group: str, places: list[tuple[str, int]], own: str) -> bool:
    """Take over the transactional ids that the last commits of these partitions name, `own` apart. Blocking, bounded.

    This fences their owners, if they still live: it is for partitions that the group has given to somebody else. False
    when the broker could not be asked, or nobody is named; the broker's own timeout then ends the transaction.
    """
    try:
        found = asking.committed(settings, group, places, stable=False).values()
    except KafkaException as failure:
        log.info("the owners of a transaction are unknown: %s", kafka.error_of(failure).str())
        return False
    if _decided(settings, group, places):
        return False  # it was the broker that was away: nobody is to be fenced for that
    owners = {owner for place in found if (owner := _owner(place)) and owner != own and owner.startswith(f"{group}.")}
    for owner in sorted(owners):
        log.warning("ending the transaction of %s, whose partitions were given to this worker", owner)
        producer = kafka.producer(settings, owner)
        caller = Caller(f"takeover-{owner}")
        try:
            caller.within(_CALL + 1, lambda producer=producer: producer.init_transactions(_CALL))  # type: ignore[misc]
        except (KafkaException, TimeoutError) as failure:
            log.warning("the transaction of %s goes on: %s", owner, failure)
        caller.close()
    return bool(owners)


def _decided(settings: Settings, group: str, places: list[tuple[str, int]]) -> bool:
    try:
        asking.committed(settings, group, places)
    except KafkaException:
        return False  # whatever it is: the caller asks on
    return True


def _owner(place: kafka.TopicPartition) -> str | None:
    try:
        return decode(place.metadata or "", place.offset).owner
    except Unreadable:
        return None
