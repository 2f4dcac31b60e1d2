"""Each agent alone: what a model would answer goes through, and `confirm` stops what may not leave."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agents.rules.acting import Action
from agents.rules.refusals import CHECKS
from agents.rules.triage import Triage
from agents.shop.customers import SeedCustomers
from farandole import OFFLINE_RULES, Emitted, Failed, load_agent
from farandole.contracts.deriving import derive
from farandole.contracts.fields.unknown import unknown_of
from farandole.event import Event
from farandole.testing import deliver
from schemas.jobs import (
    Acted,
    Category,
    Classified,
    Decision,
    Done,
    Draft,
    Enriched,
    Entities,
    Submitted,
    Team,
    Urgency,
)

NAMES = ("classify", "enrich", "act", "confirm")
AGENTS = Path(__file__).parents[2] / "agents"
classify, enrich, act, confirm = (load_agent(AGENTS / f"{name}.py") for name in NAMES)

MAIL = Submitted(
    message_id="1", sender="Customer One <customer.one@example.com>", subject="Order", text="About A-10423: hm.",
    received_at=datetime(2026, 3, 9, tzinfo=UTC),
)  # fmt: skip
DRAFT = Draft(to="customer.one@example.com", subject="Re: Order", text="Hello,\n\nYour order A-10423 is on its way.")
ACTED = Acted(
    message_id="1", category=Category.ORDER_STATUS, urgency=Urgency.NORMAL, language="en", decision=Decision.REPLY,
    why="test", decided_by="test", draft=DRAFT, known_orders=["A-10423"],
)  # fmt: skip


async def test_classify_passes_on_what_the_model_answers() -> None:
    answer = Triage(category=Category.LEGAL, urgency=Urgency.HIGH, language="la", why="because")
    out = await deliver(classify, MAIL, answers={Triage: answer})
    assert isinstance(out, Emitted)
    (event,) = out.events
    assert isinstance(event, Classified)
    assert (event.category, event.urgency, event.language, event.why) == (Category.LEGAL, Urgency.HIGH, "la", "because")


async def test_every_decision_says_who_decided() -> None:
    event: Event = MAIL
    for agent in (classify, enrich, act, confirm):
        out = await deliver(agent, event, resource=SeedCustomers() if agent is enrich else None)
        assert isinstance(out, Emitted)
        (event,) = out.events
        assert getattr(event, "decided_by") == OFFLINE_RULES  # noqa: B009  each of four classes has it


async def enriched(mail: Submitted) -> Enriched:
    event: Event = mail
    for agent in (classify, enrich):
        out = await deliver(agent, event, resource=SeedCustomers() if agent is enrich else None)
        assert isinstance(out, Emitted)
        (event,) = out.events
    assert isinstance(event, Enriched)
    return event


async def test_enrich_finds_what_the_text_names_and_who_wrote_it() -> None:
    event = await enriched(MAIL)
    assert event.history
    assert event.entities == Entities(orders=["A-10423"])
    assert [order.number for order in event.history.orders] == ["A-10423", "A-10077"]


async def test_a_sender_without_an_address_is_nobody_we_know() -> None:
    assert (await enriched(MAIL.model_copy(update={"sender": "unknown"}))).history is None


async def test_a_draft_that_passes_every_check_is_done() -> None:
    out = await deliver(confirm, ACTED)
    done = Done(message_id="1", category=Category.ORDER_STATUS, decision=Decision.REPLY, decided_by="test", draft=DRAFT)
    assert out == Emitted([done])


def drafted(**changes: str) -> dict[str, Any]:
    return {"draft": DRAFT.model_copy(update=changes)}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"draft": None}, "incomplete"),
        ({"draft": None, "decision": Decision.ROUTE}, "incomplete"),
        (drafted(to=""), "no_recipient"),
        (drafted(to="noreply@example.com"), "automatic_sender"),
        ({"category": Category.LEGAL}, "needs_a_person"),
        (drafted(text="Your card 4111-1111-1111-1111 was charged."), "card_number"),
        (drafted(text="Please pay at http://pay.example today."), "foreign_link"),
        (drafted(text="Your order A-10999 is on its way."), "unverified_order"),
        (drafted(text="Hello {name}, it is on its way."), "unfilled"),
        (drafted(text="It is on its way. " * 1000), "too_long"),
        (drafted(text="Ihre Bestellung ist auf dem Weg zu Ihnen."), "wrong_language"),
    ],
)
async def test_confirm_stops_what_may_not_leave(changes: dict[str, Any], reason: str) -> None:
    assert await deliver(confirm, ACTED.model_copy(update=changes)) == Failed(reason)


async def test_every_reason_of_the_closed_list_has_a_check() -> None:
    assert confirm.reasons
    assert set(CHECKS) == set(confirm.reasons)


@pytest.mark.parametrize(
    "text",
    ["1234 5678 9012 3456", "+49 30 555 01 23", "see https://shop.example.com/orders for more", "0000 0000 0000 0000"],
)
async def test_confirm_lets_harmless_numbers_and_our_own_links_pass(text: str) -> None:
    assert isinstance(await deliver(confirm, ACTED.model_copy(update=drafted(text=f"This is yours: {text}"))), Emitted)


async def test_act_passes_on_what_the_model_answers() -> None:
    answer = Action(decision=Decision.ROUTE, why="because", team=Team.CARE)
    out = await deliver(act, await enriched(MAIL), answers={Action: answer})
    assert isinstance(out, Emitted)
    (event,) = out.events
    assert isinstance(event, Acted) and event.team is Team.CARE


@pytest.mark.parametrize("event", [Submitted, Classified, Enriched, Acted, Done])
def test_every_event_has_an_avro_schema_and_marks_what_is_personal(event: type[Event]) -> None:
    schema = derive(event, "jobs")
    assert schema["topic"] == f"jobs.{event.__name__.lower()}"
    assert "'personal': True" in str(schema)


def test_a_symbol_from_a_newer_version_has_a_default() -> None:
    declared = {kind: unknown_of(kind, kind.__name__) for kind in (Category, Urgency, Decision, Team)}
    assert declared == {Category: "other", Urgency: "normal", Decision: "route", Team: "support"}
