"""An event that is put off behind finished ones of its key waits until those are committed; nothing else waits for anything."""

from __future__ import annotations

from farandole.kafka import Record
from farandole.worker.ahead import Ahead
from farandole.worker.holdings import Held, Item
from farandole.worker.tracker import Tracker


def held() -> Held:
    return Held("jobs.asked", 0, Tracker(0), (0, []))


def item(offset: int, key: bytes | None, of: Held) -> Item:
    return Item(Record("jobs.asked", 0, offset, 0, key, b"v", []), of, offset)


def lane(one: Item) -> bytes | None:
    return one.record.key


def test_an_event_is_put_off_at_once_when_nothing_of_its_key_is_to_be_committed() -> None:
    ahead, here = Ahead(lane), held()
    ahead.finished([item(0, b"other", here), item(1, None, here)])
    free, loose = item(2, b"k", here), item(3, None, here)
    assert ahead.put_off([free, loose]) == [free, loose]


def test_an_event_is_put_off_once_all_that_was_finished_of_its_key_is_committed() -> None:
    ahead, here = Ahead(lane), held()
    first, second, third, fourth = (item(offset, b"k", here) for offset in range(4))
    ahead.finished([first, second])
    assert ahead.put_off([third, fourth]) == []
    assert ahead.settled([first]) == []
    assert ahead.settled([second]) == [third, fourth]
    assert ahead.put_off([item(4, b"k", here)]) != []


def test_what_was_committed_without_being_announced_changes_nothing() -> None:
    ahead, here = Ahead(lane), held()
    first, second = item(0, b"k", here), item(1, b"k", here)
    ahead.finished([first])
    assert ahead.put_off([second]) == []
    assert ahead.settled([item(7, b"k", here), item(8, b"other", here), item(9, None, here)]) == []
    assert ahead.settled([first]) == [second]


def test_what_waits_in_a_partition_that_is_lost_is_given_back() -> None:
    ahead, gone, here = Ahead(lane), held(), held()
    first, second = item(0, b"k", gone), item(1, b"k", gone)
    ahead.finished([first])
    assert ahead.put_off([second]) == []
    gone.lost = True
    assert ahead.settled([item(5, b"k", here)]) == [second]
