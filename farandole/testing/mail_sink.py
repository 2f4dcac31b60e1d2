"""MailSink: a local mail server that keeps what it is given, for tests and the demo; nothing leaves the machine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from types import TracebackType
from typing import Any

from farandole.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Received:
    """One mail as it was taken."""

    to: str
    mail: EmailMessage

    @property
    def message_id(self) -> str:
        return str(self.mail["Message-ID"])

    @property
    def text(self) -> str:
        """Of its plain body."""
        return str(self.mail.get_content()).strip()


class MailSink:
    """`with MailSink() as sink:`; `sink.url` is an SMTP_URL, `sink.mails` what came, in order.

    Args:
        answer: gives another answer than "250 OK" to a mail, such as "451 later" or "550 never"; None: it is taken. "drop"
            takes the mail and cuts the connection before it says so.
    """

    def __init__(self, answer: Callable[[Received], str | None] = lambda mail: None) -> None:
        try:
            from aiosmtpd.smtp import SMTP
        except ImportError:
            raise ConfigurationError("the local mail server needs aiosmtpd: pip install 'farandole[local]'") from None
        self._answer = answer
        self._loop = loop = asyncio.new_event_loop()
        self._protocol = lambda: SMTP(self, data_size_limit=10_000_000, loop=loop)
        self.mails: list[Received] = []
        self.url = ""  #: for the setting SMTP_URL

    def __enter__(self) -> MailSink:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="mail-sink", daemon=True)
        self._thread.start()
        ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(self._loop.create_server(self._protocol, "127.0.0.1", 0))
        self.url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        self._loop.run_forever()
        server.close()

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802  the library's name
        """Called by the server for each mail."""
        mail = message_from_bytes(envelope.content, policy=default)
        received = Received(", ".join(envelope.rcpt_tos), mail)
        answer = self._answer(received)
        if answer in (None, "drop"):
            self.mails.append(received)
        if answer == "drop":
            server.transport.close()
        return answer or "250 OK"
