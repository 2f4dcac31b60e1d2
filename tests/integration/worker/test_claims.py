"""Which of several records of one event has the claim, as far as their order in the log decides it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from farandole import postgres
from farandole.migrate import migrate
from farandole.outage import Outage
from farandole.outcome import Skipped
from farandole.settings import Settings
from farandole.worker.holdings import Item
from farandole.worker.ledger import Ledger
from tests.integration.worker.waiting import Desk


@pytest.fixture
def desk(farandole_settings: Settings) -> Iterator[Desk]:
    migrate(farandole_settings)
    with postgres.connect(farandole_settings, application="test") as connection:
        yield Desk(farandole_settings, connection)


@pytest.fixture
def ledger(farandole_settings: Settings, desk: Desk) -> Iterator[Ledger]:
    made = Ledger(farandole_settings, desk.agent.name, lambda: Outage("test", 10, lambda: False))
    made.open()
    yield made
    made.close()


def again(item: Item, offset: int) -> Item:
    """The same event in another record of the same partition."""
    return Item(item.record, item.held, offset, fields=item.fields, payload=object())  # type: ignore[arg-type]


def test_of_records_with_one_event_in_one_batch_the_first_has_the_claim_whatever_lies_between(
    desk: Desk, ledger: Ledger
) -> None:
    events = [again(desk.item(f"key {number}", number), number) for number in range(200)]
    copies = [again(event, 1000 + number) for number, event in enumerate(events)]
    given: list[Any] = [*events, *copies]
    random.Random(1).shuffle(given)
    ledger.claim(given)
    assert [item.outcome for item in events] == [None] * len(events)
    assert [item.outcome for item in copies] == [Skipped("duplicate")] * len(copies)
