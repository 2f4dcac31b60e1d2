"""The example inbox with models behind the agents: a local Messages API that answers by looking at each mail."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
from pydantic import SecretStr

from agents.rules import entities
from agents.rules.acting import decide
from agents.rules.reading import Reading
from agents.rules.triage import triage
from farandole.client import Client
from farandole.settings import Settings
from farandole.sources import rows
from farandole.submissions import submissions
from farandole.testing import FakeMessages, MailSink, running_flow
from farandole.testing.messages import Answer
from schemas.jobs import Category, Enriched, Entities, History, Submitted, Urgency
from tests.eventually import eventually
from tests.kafka_log import KafkaLog

ROOT = Path(__file__).parents[2]
HAIKU, SONNET = "claude-haiku-5-5", "claude-sonnet-5-5"

_DATA = re.compile(r"<data (\S+) id=(\w+)>\n(.*?)\n</data id=\2>", re.DOTALL)
_SAYS = re.compile(r"The mail is about (\w+), its urgency is (\w+), its language is")


def answer(body: dict[str, Any]) -> Answer:
    """What a model might say of this mail: the rules' own words, but for an order that it makes up at first."""
    asked = str(body["messages"][0]["content"])
    given = {name: text for name, _, text in _DATA.findall(asked)}
    if "mail.entities" in given:
        return Answer(_acted(asked, given))
    if "mail.excerpt" in given:
        return Answer(_read(given, again=len(body["messages"]) > 1))
    return Answer(triage(given["sender"], given["subject"], given["text"]).model_dump(mode="json"))


def _read(given: dict[str, str], *, again: bool) -> dict[str, Any]:
    text = f"{given['mail.subject']}\n{given['mail.excerpt']}"
    found = Reading(entities=entities.find(text), summary="The sender writes.").model_dump(mode="json")
    if found["entities"]["orders"] and not again:
        found["entities"]["orders"].append("Z-99999")
    return found


def _acted(asked: str, given: dict[str, str]) -> dict[str, Any]:
    says = _SAYS.search(asked)
    assert says
    history = given.get("mail.history")
    mail = Enriched(
        message_id="1",
        category=Category(says[1]),
        urgency=Urgency(says[2]),
        language=given["mail.language"],
        sender=given["mail.sender"],
        subject=given["mail.subject"],
        entities=Entities.model_validate_json(given["mail.entities"]),
        history=History.model_validate_json(history) if history else None,
        decided_by="a model",
    )
    return decide(mail).model_dump(mode="json")


def test_models_decide_over_the_whole_inbox_and_what_rules_forbid_is_not_sent(farandole_settings: Settings) -> None:
    log = KafkaLog(farandole_settings.brokers, farandole_settings.namespace)
    with MailSink() as sink, FakeMessages(models={HAIKU, SONNET}) as fake:
        fake.rule(answer)
        given = {"anthropic_api_key": SecretStr("test"), "anthropic_base_url": fake.url}
        settings = farandole_settings.model_copy(update={**given, "smtp_url": SecretStr(sink.url)})
        with running_flow(settings, projector=False, root=ROOT):
            asyncio.run(submit(settings))
            eventually(lambda: len(ended(log, "jobs.done")) + len(ended(log, "jobs.failed")) == 42, "42 ends", 120)
    done, failed = ended(log, "jobs.done"), ended(log, "jobs.failed")
    assert len(failed) == 4
    assert Counter(event["decided_by"] for event in done) == {SONNET: 38}

    sent = [event["sent_as"] for event in done if event["sent_as"]]
    assert Counter(mail.message_id for mail in sink.mails) == Counter(sent)
    assert len(sent) == len(set(sent)) == sum(event["decision"] == "reply" for event in done)

    # An order that was made up was taken back, and what a model insists on goes no further than its agent's own rules.
    assert not [event for event in log.fields("jobs.enriched") if "Z-99999" in event["entities"]["orders"]]
    asked_again = sum(len(call.body["messages"]) > 1 for call in fake.calls)
    assert asked_again > 4
    with psycopg.connect(settings.database) as database:
        query = f'SELECT model, count(*) FROM "{settings.schema_name}".usage GROUP BY model'
        assert dict(database.execute(query).fetchall()) == Counter(call.model for call in fake.calls)


def ended(log: KafkaLog, topic: str) -> list[dict[str, Any]]:
    return list(log.fields(topic)) if log.exists(topic) else []


async def submit(settings: Settings) -> None:
    async with Client(settings) as client:
        checked = submissions(rows(ROOT / "examples/inbox.jsonl"), Submitted, key="message_id")
        _ = [trace async for trace in client.submit_many(checked)]
