"""The example inbox through the four agents: one line a mail, for a reader to agree or disagree with."""

from pathlib import Path

import pytest

from agents.shop.customers import SeedCustomers
from farandole import Agent, Emitted, Event, Failed, load_agent
from farandole.outcome import Outcome
from farandole.sources import rows
from farandole.testing import deliver
from schemas.jobs import Acted, Classified, Submitted

ROOT = Path(__file__).parents[2]
AGENTS = [load_agent(ROOT / "agents" / f"{name}.py") for name in ("classify", "enrich", "act", "confirm")]

#: mail, what it is: category, urgency, language, decision, and who takes it or why it is stopped
EXPECTED = """
m01 an order that is on its way        order_status    normal en  reply
m02 the same in German                 order_status    normal de  reply
m03 two orders, one too many           refund          normal fr  route  billing
m04 the tracking number, please        order_status    normal es  reply
m05 a chair with a broken leg          complaint       normal it  reply  care
m06 the third broken parcel            complaint       normal en  reply  care
m07 cancel before it leaves            refund          normal en  reply  billing
m08 Dutch, which we cannot write       order_status    normal nl  route  support
m09 a thank-you                        thanks          low    en  reply
m10 the invoice for the tax            invoice         normal en  reply  billing
m11 an order, but which                order_status    normal en  reply
m12 somebody else's order              order_status    normal en  route  support
m13 two hundred lamps                  sales           normal en  route  sales
m14 "your account is suspended"        phishing        high   en  route  security
m15 a lottery                          spam            low    en  ignore
m16 pills                              spam            low    en  ignore
m17 a newsletter                       newsletter      low    en  ignore
m18 a mailing list                     newsletter      low    en  ignore
m19 an application                     job_application low    en  reply  people
m20 a German application               job_application low    de  reply  people
m21 neither subject nor text           empty           low    und reply
m22 nobody to answer to                refund          normal en  reply  no_recipient
m23 a bounce                           auto_reply      low    en  ignore
m24 out of office                      auto_reply      low    de  ignore
m25 a machine that asks                order_status    normal en  reply  automatic_sender
m26 a threat                           legal           high   en  route  legal
m27 a fire                             other           high   en  route  support
m28 Japanese                           order_status    normal ja  route  support
m29 Russian                            order_status    normal ru  route  support
m30 Arabic, right to left              order_status    normal ar  route  support
m31 Chinese                            sales           normal zh  route  sales
m32 a French lawyer                    legal           high   fr  route  legal
m33 twenty kilobytes of log            technical       normal en  route  support
m34 emoji, invisible characters        thanks          low    en  reply
m35 combining marks, control codes     other           normal en  route  support
m36 a card number in the subject       refund          normal en  reply  billing card_number
m37 a link in the subject              order_status    normal en  reply  foreign_link
m38 a forgotten password               technical       normal en  route  support
m39 Portuguese                         order_status    normal pt  route  support
m40 a German invoice                   invoice         normal de  reply  billing
m41 gift cards for the boss            phishing        high   en  route  security
m42 three questions for a thesis       other           normal en  route  support
m01 the first one once more            order_status    normal en  reply
"""
LINES = [(line[:3], line[39:].split()) for line in EXPECTED.strip().splitlines()]
MAILS = list(rows(ROOT / "examples" / "inbox.jsonl"))


async def journey(mail: Submitted, agents: list[Agent] = AGENTS) -> list[Outcome]:
    """The outcome at each agent, up to the first that emits nothing."""
    event: Event = mail
    outcomes: list[Outcome] = []
    for agent in agents:
        outcomes.append(await deliver(agent, event, resource=SeedCustomers() if agent.name == "enrich" else None))
        match outcomes[-1]:
            case Emitted(events=(event,)):
                pass
            case _:
                break
    return outcomes


def test_the_table_below_has_a_line_for_every_mail_in_order() -> None:
    assert [line[0] for line in LINES] == [row.fields["message_id"][:3] for row in MAILS]


@pytest.mark.parametrize("number", range(len(LINES)), ids=lambda number: f"{number + 1:02d}")
async def test_each_mail_of_the_inbox_ends_as_the_table_says(number: int) -> None:
    first, _, third, last = await journey(Submitted(**MAILS[number].fields))
    assert isinstance(first, Emitted) and isinstance(third, Emitted)
    classified, acted = first.events[0], third.events[0]
    assert isinstance(classified, Classified) and isinstance(acted, Acted)
    found = [classified.category.value, classified.urgency.value, classified.language, acted.decision.value]
    found += [acted.team.value] if acted.team else []
    found += [last.reason] if isinstance(last, Failed) else []
    assert found == LINES[number][1]


async def test_the_same_mail_gives_the_same_journey() -> None:
    assert await journey(Submitted(**MAILS[0].fields)) == await journey(Submitted(**MAILS[-1].fields))


async def test_a_long_text_travels_two_hops_and_no_further() -> None:
    outcomes = await journey(Submitted(**(MAILS[0].fields | {"text": "where is my order? " * 20_000})))
    sizes = [len(outcome.events[0].model_dump_json()) for outcome in outcomes if isinstance(outcome, Emitted)]
    assert sizes[0] > 10_000
    assert all(size < 3_000 for size in sizes[1:])
