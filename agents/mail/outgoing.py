"""Mails by SMTP: one connection a mail, and an error that says whether the mail may have gone out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import localtime
from urllib.parse import SplitResult, parse_qs, parse_qsl, unquote, urlsplit

import aiosmtplib

from agents.rules.senders import ADDRESS
from farandole import FarandoleError, Reject, Retry
from farandole.errors import ConfigurationError, ExitCode
from farandole.settings import Settings
from schemas.jobs import Draft

#: Connections of one worker to the mail server.
CONNECTIONS = 10

#: Seconds: for a connection of these to be free, for the conversation up to the mail itself, for the mail itself. Together
#: less than `act` has for an attempt: one that is cut off in the middle of a mail leaves it unknown whether it was sent.
PATIENCE = 10.0

#: Who our mails are from, unless SMTP_URL says `?from=`.
FROM = "support@shop.example.com"

#: What `?starttls=` may be, as aiosmtplib has it; by default TLS is used where the server offers it.
STARTTLS = {"always": True, "never": False, "auto": None}

#: 8 bits are taken by servers that say so, 7 by all.
POLICY = SMTP.clone(cte_type="7bit")

_MESSAGE_ID = re.compile(r"<?([^<>@\s]{1,200}@[^<>@\s]{1,200})>?", re.ASCII)


class Mailer:
    """Sends mails through one server. Raises FarandoleError for a URL that is none."""

    def __init__(self, url: str) -> None:
        self._server = _server(url)
        options = parse_qs(self._server.query)
        self._from = options.get("from", [FROM])[0]
        self._starttls = STARTTLS[options.get("starttls", ["auto"])[0]]
        self._room = asyncio.Semaphore(CONNECTIONS)

    async def send(self, draft: Draft, key: str, answers: str) -> str:
        """Send the draft as an answer to the mail with the Message-ID `answers`; its own Message-ID, which is made of `key`:
        the same for every try, so that a receiver can tell a second copy.

        Raises Retry when it has not been sent and may be later, Reject when the server will not have this mail, and
        ConfigurationError when it will have none of ours. Any other error: nobody knows.
        """
        mail = self.mail(draft, key, answers)
        content = mail.as_bytes()
        async with self._connection() as client:
            await self._announce(client, draft.to)
            try:
                await client.data(content)
            except aiosmtplib.SMTPResponseException as refused:
                raise _refused(refused) from refused
        return str(mail["Message-ID"])

    def mail(self, draft: Draft, key: str, answers: str) -> EmailMessage:
        """The mail as it is sent. Line breaks in what becomes a header are spaces: a header cannot grow another one."""
        mail = EmailMessage(policy=POLICY)
        mail["From"], mail["To"] = self._from, " ".join(draft.to.split())
        mail["Subject"] = " ".join(draft.subject.split())
        mail["Date"] = localtime()
        mail["Message-ID"] = f"<{key}@{self._from.rpartition('@')[2]}>"
        if found := _MESSAGE_ID.fullmatch(answers):
            mail["In-Reply-To"] = mail["References"] = f"<{found[1]}>"
        mail["Auto-Submitted"] = "auto-replied"  # RFC 3834: other machines do not answer it
        mail.set_content(draft.text)
        return mail

    async def _announce(self, client: aiosmtplib.SMTP, to: str) -> None:
        """All of the conversation before the mail. Whatever fails here, not a word of the mail has left."""
        try:
            async with asyncio.timeout(PATIENCE):
                await client.connect()
                await client.mail(self._from)
                try:
                    await client.rcpt(to)
                except aiosmtplib.SMTPResponseException as refused:
                    raise _refused(refused) from refused
        except aiosmtplib.SMTPResponseException as refused:
            if 400 <= refused.code < 500:
                raise _refused(refused) from refused
            # The server has not heard yet whom it is for: it would say this to every mail.
            raise ConfigurationError(f"SMTP_URL: {_said(refused)}") from refused
        except (aiosmtplib.SMTPException, OSError) as failure:
            raise Retry(f"the mail server does not answer: {failure or type(failure).__name__}") from failure

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[aiosmtplib.SMTP]:
        """A client that is not connected yet; raises Retry when all connections stay in use."""
        try:
            await asyncio.wait_for(self._room.acquire(), PATIENCE)
        except TimeoutError:
            raise Retry(f"the mail server is slow: {CONNECTIONS} connections are in use") from None
        server = self._server
        client = aiosmtplib.SMTP(
            hostname=server.hostname,
            port=server.port,
            username=unquote(server.username) if server.username else None,
            password=unquote(server.password) if server.password else None,
            use_tls=server.scheme == "smtps",
            start_tls=False if server.scheme == "smtps" else self._starttls,
            timeout=PATIENCE,
        )
        try:
            yield client
        finally:
            client.close()
            self._room.release()


@asynccontextmanager
async def open_mailer(settings: Settings) -> AsyncIterator[Mailer | None]:
    """The mailer of SMTP_URL; None without one: then nothing is sent, and `sent_as` stays empty."""
    yield Mailer(settings.smtp_url.get_secret_value()) if settings.smtp_url else None


def _server(url: str) -> SplitResult:
    expected = "expected smtp://user:password@host:port or smtps://…, then ?from=ADDRESS and &starttls=always|never if you like"
    try:
        server = urlsplit(url)
        whole = (
            server.scheme in ("smtp", "smtps") and server.hostname and (server.port or True) and _known(server.query)
        )
    except ValueError:
        whole = None
    if not whole:
        raise FarandoleError(f"SMTP_URL is no address of a mail server; {expected}", ExitCode.CONFIGURATION)
    return server


def _known(query: str) -> bool:
    """Whether these options are ours; raises ValueError for what is no query."""
    options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    sender = options.pop("from", FROM)
    return ADDRESS.fullmatch(sender) is not None and options.pop("starttls", "auto") in STARTTLS and not options


def _refused(answer: aiosmtplib.SMTPResponseException) -> Retry | Reject:
    """4yz: later; 5yz: never (RFC 5321, 4.2.1)."""
    return Retry(_said(answer)) if 400 <= answer.code < 500 else Reject(_said(answer))


def _said(answer: aiosmtplib.SMTPResponseException) -> str:
    return f"the mail server says {answer.code} {answer.message}"
