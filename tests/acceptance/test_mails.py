"""Mails that agents send: once, to a real server, whatever happens to the worker or the conversation with the server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from agents.mail.outgoing import Mailer
from farandole import FarandoleError, Reject, Retry
from farandole.client import Client, Submission
from farandole.errors import ConfigurationError
from farandole.settings import Settings
from farandole.sources import rows
from farandole.submissions import submissions
from farandole.testing import FakeMessages, MailSink, running_flow
from farandole.testing.mail_sink import Received
from farandole.testing.messages import Answer
from schemas.jobs import Draft, Submitted
from tests.commands import Command, running
from tests.eventually import eventually
from tests.kafka_log import KafkaLog

ROOT = Path(__file__).parents[2]
AGENTS = [ROOT / "agents" / f"{name}.py" for name in ("classify", "enrich", "act", "confirm")]
DRAFT = Draft(to="customer.one@example.com", subject="Re: Order", text="Hello,\n\nit is on its way.\n.\nÜber alles.")


def send(sink: MailSink, draft: Draft = DRAFT, answers: str = "<m1@example.com>") -> str:
    return asyncio.run(Mailer(sink.url).send(draft, "fd-1", answers))


def test_a_mail_says_what_it_answers_and_is_named_after_its_key() -> None:
    with MailSink() as sink:
        assert send(sink) == "<fd-1@shop.example.com>"
    (received,) = sink.mails
    assert received.to == DRAFT.to
    assert received.mail["In-Reply-To"] == "<m1@example.com>"
    assert received.text.replace("\r\n", "\n") == DRAFT.text


def test_a_subject_cannot_grow_another_header() -> None:
    with MailSink() as sink:
        send(sink, DRAFT.model_copy(update={"subject": "Re: x\r\nBcc: all@example.com"}), answers="no\r\nid")
    assert sink.mails[0].mail["Bcc"] is None
    assert sink.mails[0].mail["In-Reply-To"] is None


@pytest.mark.parametrize(
    ("answer", "expected", "taken"),
    [("451 later", Retry, 0), ("550 never", Reject, 0), ("drop", Exception, 1)],
)
def test_an_answer_says_whether_the_mail_has_gone_out(answer: str, expected: type[Exception], taken: int) -> None:
    with MailSink(lambda mail: answer) as sink, pytest.raises(expected) as raised:
        send(sink)
    assert (expected is Exception) != isinstance(raised.value, Retry | Reject), "nobody knows, and it says so"
    assert len(sink.mails) == taken


@pytest.mark.parametrize("message_id", ["m1@example.com", "<m1@example.com>"])
def test_a_mail_answers_another_with_or_without_brackets(message_id: str) -> None:
    with MailSink() as sink:
        send(sink, answers=message_id)
    assert sink.mails[0].mail["In-Reply-To"] == sink.mails[0].mail["References"] == "<m1@example.com>"
    assert sink.mails[0].mail["Date"]


def test_any_server_can_take_the_bytes_of_a_mail() -> None:
    mail = Mailer("smtp://127.0.0.1").mail(DRAFT, "fd-1", "")
    content = mail.as_bytes()
    assert content.isascii()
    assert max(map(len, content.splitlines())) <= 998


def test_a_server_that_will_have_none_of_our_mails_is_a_mistake_of_configuration_and_no_mails_fault() -> None:
    """The sink offers no login and no TLS; a refusal that names no recipient is the same for every mail."""
    with MailSink() as sink, pytest.raises((ConfigurationError, Retry)) as asked:
        asyncio.run(Mailer(sink.url + "?starttls=always").send(DRAFT, "fd-1", ""))
    assert not isinstance(asked.value, Reject) and not sink.mails


async def test_a_server_that_refuses_our_own_address_stops_the_agent() -> None:
    async def refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 here\r\n")
        while line := await reader.readline():
            writer.write(b"550 you are not known here\r\n" if line.startswith(b"MAIL") else b"250 fine\r\n")
        writer.close()

    server = await asyncio.start_server(refusing, "127.0.0.1", 0)
    async with server:
        mailer = Mailer(f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(ConfigurationError, match="SMTP_URL: the mail server says 550"):
            await mailer.send(DRAFT, "fd-1", "")


def test_a_server_that_is_away_has_not_been_given_anything() -> None:
    with MailSink() as sink:
        url = sink.url
    with pytest.raises(Retry):
        asyncio.run(Mailer(url).send(DRAFT, "fd-1", ""))


@pytest.mark.parametrize(
    "url",
    [
        "smtps://:secret@",
        "http://u:secret@mail.example.com",
        "smtp://u:secret@mail.example.com:99999",
        "secret",
        "smtp://u:secret@mail.example.com?starttls=perhaps",
        "smtp://u:secret@mail.example.com?form=a@example.com",
        "smtp://u:secret@mail.example.com?from=nobody",
    ],
)
def test_a_wrong_url_is_named_and_not_repeated(url: str) -> None:
    with pytest.raises(FarandoleError, match="SMTP_URL") as raised:
        Mailer(url)
    assert "secret" not in str(raised.value)


def submit(settings: Settings, most: int = 1000) -> list[str]:
    async def go() -> list[str]:
        async with Client(settings) as client:
            checked: list[Submission] = list(
                submissions(rows(ROOT / "examples/inbox.jsonl"), Submitted, key="message_id")
            )
            return [str(trace_id) async for trace_id in client.submit_many(checked[:most])]

    return asyncio.run(go())


def test_the_inbox_is_answered_once_whatever_is_killed(farandole_settings: Settings, tmp_path: Path) -> None:
    """`act` is killed while mails are on their way: each is sent once, or a person is asked."""
    log = KafkaLog(farandole_settings.brokers, farandole_settings.namespace)
    kills = iter([3, 8])
    at = [next(kills)]
    command: list[Command] = []

    def killing(mail: Received) -> str | None:
        if at[0] is not None and len(sink.mails) >= at[0]:
            at[0] = next(kills, 10_000)
            command[0].process.kill()
        return None

    others = [file for file in AGENTS if file.stem != "act"]
    submit(farandole_settings)
    with MailSink(killing) as sink, running_flow(farandole_settings, others, projector=False):
        more = {"SMTP_URL": sink.url, "FARANDOLE_LEASE_SECONDS": "2"}
        for life in range(3):
            with running(farandole_settings, tmp_path / f"act-{life}.log", "run", AGENTS[2], more=more) as command_:
                command[:] = [command_]
                ended: Callable[[], bool] = lambda: command[0].process.poll() is not None or over(log)  # noqa: E731
                eventually(ended, "the mails, or a kill", 60)
        assert over(log)
        mails = Counter(mail.message_id for mail in sink.mails)
        assert set(mails.values()) == {1}
        held = log.read("act.dead") if log.exists("act.dead") else []
        assert {letter.header("farandole.dead.cause") for letter in held} <= {"held"}
        sent = {fields["sent_as"] for fields in log.fields("jobs.acted")} - {None}
        assert sent <= set(mails), "what is said to be sent was sent"
        assert len(mails) >= 14 - len(held)


def over(log: KafkaLog) -> bool:
    """Whether every mail is acted upon, or is a dead letter."""
    acted = len(log.fields("jobs.acted")) if log.exists("jobs.acted") else 0
    dead = len(log.read("act.dead")) if log.exists("act.dead") else 0
    return acted + dead >= 42


def answers(body: dict[str, object]) -> Answer | None:
    """What the models say of any mail: an invoice, to be answered."""
    text = str(body["messages"])
    if "Answer to:" not in text:
        return None if "entities" in str(body["output_config"]) else Answer(TRIAGE)
    to = text.split("Answer to: ")[1].split("\\n")[1]
    draft = {
        "to": to,
        "subject": "Re: yours",
        "text": "Hello,\n\nthank you. We have received your message.\n\nYour shop team",
    }
    return Answer({"decision": "reply", "why": "a short answer will do", "draft": draft, "team": None})


TRIAGE = {"category": "invoice", "urgency": "normal", "language": "en", "why": "it asks for an invoice"}


def test_models_decide_where_there_is_a_key_and_the_journey_says_so(farandole_settings: Settings) -> None:
    log = KafkaLog(farandole_settings.brokers, farandole_settings.namespace)
    with MailSink() as sink, FakeMessages() as fake:
        fake.rule(answers)
        settings = farandole_settings.model_copy(
            update={
                "anthropic_api_key": SecretStr("test"),
                "anthropic_base_url": fake.url,
                "smtp_url": SecretStr(sink.url),
            }
        )
        with running_flow(settings, AGENTS, projector=False):
            submit(settings, most=1)
            eventually(lambda: log.exists("jobs.done") and log.fields("jobs.done"), "the job's end", 60)
    (done,) = log.fields("jobs.done")
    assert done["decided_by"] == "claude-sonnet-5-5"
    assert [call.model for call in fake.calls] == ["claude-haiku-5-5", "claude-haiku-5-5", "claude-sonnet-5-5"]
    assert [mail.message_id for mail in sink.mails] == [done["sent_as"]]
