"""Mails by SMTP: one connection a mail, and an error that says whether the mail may have gone out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.policy import SMTP as POLICY
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import aiosmtplib

from farandole import FarandoleError, Reject, Retry
from farandole.errors import ExitCode
from farandole.settings import Settings
from schemas.jobs import Draft

#: Connections of one worker to the mail server.
CONNECTIONS = 10

#: Seconds for each step of a conversation with the mail server.
PATIENCE = 20.0

#: Who our mails are from, unless SMTP_URL says `?from=`.
FROM = "support@shop.example.com"

_MESSAGE_ID = re.compile(r"<[^<>@\s]{1,200}@[^<>@\s]{1,200}>")


class Mailer:
    """Sends mails through one server. Raises FarandoleError for a URL that is none."""

    def __init__(self, url: str) -> None:
        self._server = _server(url)
        self._from = parse_qs(self._server.query).get("from", [FROM])[0]
        self._room = asyncio.Semaphore(CONNECTIONS)

    async def send(self, draft: Draft, key: str, answers: str) -> str:
        """Send the draft as an answer to the mail with the Message-ID `answers`; its own Message-ID, which is made of `key`:
        the same for every try, so that a receiver can tell a second copy.

        Raises Retry when it has not been sent and may be later, Reject when the server will not have it. Any other error:
        nobody knows.
        """
        mail = self.mail(draft, key, answers)
        async with self._room:
            client = self._client()
            try:
                await client.connect()
                await client.mail(self._from)
                await client.rcpt(draft.to)
            except aiosmtplib.SMTPResponseException as refused:
                raise _refused(refused) from refused
            except (aiosmtplib.SMTPException, OSError) as failure:  # not a word of the mail has left
                raise Retry(f"the mail server does not answer: {failure}") from failure
            try:
                await client.data(mail.as_bytes())
            except aiosmtplib.SMTPResponseException as refused:
                raise _refused(refused) from refused
            finally:
                client.close()
        return str(mail["Message-ID"])

    def mail(self, draft: Draft, key: str, answers: str) -> EmailMessage:
        """The mail as it is sent. Line breaks in what becomes a header are spaces: a header cannot grow another one."""
        mail = EmailMessage(policy=POLICY)
        mail["From"], mail["To"] = self._from, " ".join(draft.to.split())
        mail["Subject"] = " ".join(draft.subject.split())
        mail["Message-ID"] = f"<{key}@{self._from.rpartition('@')[2]}>"
        if _MESSAGE_ID.fullmatch(answers):
            mail["In-Reply-To"] = mail["References"] = answers
        mail["Auto-Submitted"] = "auto-replied"  # RFC 3834: other machines do not answer it
        mail.set_content(draft.text)
        return mail

    def _client(self) -> aiosmtplib.SMTP:
        server = self._server
        return aiosmtplib.SMTP(
            hostname=server.hostname,
            port=server.port,
            username=unquote(server.username) if server.username else None,
            password=unquote(server.password) if server.password else None,
            use_tls=server.scheme == "smtps",
            timeout=PATIENCE,
        )


@asynccontextmanager
async def open_mailer(settings: Settings) -> AsyncIterator[Mailer | None]:
    """The mailer of SMTP_URL; None without one: then nothing is sent, and `sent_as` stays empty."""
    yield Mailer(settings.smtp_url.get_secret_value()) if settings.smtp_url else None


def _server(url: str) -> SplitResult:
    expected = "expected smtp://user:password@host:port or smtps://…, with ?from=ADDRESS if you like"
    try:
        server = urlsplit(url)
        whole = server.scheme in ("smtp", "smtps") and server.hostname and (server.port or True)
    except ValueError:
        whole = None
    if not whole:
        raise FarandoleError(f"SMTP_URL is no address of a mail server; {expected}", ExitCode.CONFIGURATION)
    return server


def _refused(answer: aiosmtplib.SMTPResponseException) -> Retry | Reject:
    """4yz: later; 5yz: never (RFC 5321, 4.2.1)."""
    text = f"the mail server says {answer.code} {answer.message}"
    return Retry(text) if 400 <= answer.code < 500 else Reject(text)
