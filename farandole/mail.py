"""A mail's raw bytes to plain fields, whatever the bytes: the standard library parses, the rules here repair.

- The text is that of the text/plain parts, else of the HTML ones, stripped. A mail inside the mail is an attachment.
- A charset that is unknown or wrong is read as UTF-8, else as Windows-1252.
- NUL is removed, a lone surrogate becomes U+FFFD, line ends become "\\n"; a text over `MAX_TEXT` is cut, and says so.
- The time is that of the Date header; where it names no zone, UTC. One that is missing, unreadable or not of this age
  (1980-2100) gives way to the newest Received header, then to the mbox's own line, then to what the caller knows.
- A mail without a Message-ID is named by the hash of its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.errors import MessageDefect
from email.message import Message
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any

from farandole.html_text import text_of

#: Characters of a text. In UTF-8 at most 800 kB, so that the event fits a topic's usual limit of 1 MB.
MAX_TEXT = 200_000

#: Characters of a header that are parsed: the standard library's parser takes the square of the length.
MAX_HEADER = 2_000

#: Nested parts that are looked at; real mails have under 50.
MAX_PARTS = 500

_KNOWN = re.compile(rb"(?:from|sender|subject|date|message-id|received)\s*:", re.IGNORECASE)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Mail:
    """The fields of a mail, and what was odd about it."""

    fields: dict[str, Any]
    charsets: set[str] = field(default_factory=set)  #: as declared by its text parts
    oddities: set[str] = field(default_factory=set)  #: stable words, the defects of the standard library among them


class _Tolerant(policy.EmailPolicy):
    """policy.default, but a header is bounded, and one that the parser chokes on stays as it was written."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        value = value[:MAX_HEADER]
        if _LONE_SURROGATE.search(value):  # bytes outside ASCII, as the parser keeps them
            value = _decode(value.encode("utf-8", "surrogateescape"), "")
        return name, value

    def header_fetch_parse(self, name: str, value: str) -> Any:
        try:
            return super().header_fetch_parse(name, value)
        except Exception:  # noqa: BLE001  the parser answers broken headers with a dozen kinds of error
            return self.header_factory("x-unreadable", clean(" ".join(value.split())))


_POLICY = _Tolerant()


def read_mail(raw: bytes, source: str, otherwise: datetime, *, delivered: datetime | None = None) -> Mail:
    """The fields message_id, sender, subject, text, received_at (ISO 8601 with an offset) and source. Never raises.

    Args:
        otherwise: the time of a mail that tells none; with a zone.
        delivered: what the mbox's "From " line says.
    """
    mail = Mail({})
    message = _parse(raw, mail)
    mail.fields |= {
        "message_id": _message_id(message, raw, mail),
        "sender": header(message, "From") or header(message, "Sender") or header(message, "Return-Path"),
        "subject": header(message, "Subject"),
        "text": _cut(_text(message, mail), mail),
        "received_at": _time(message, delivered or otherwise, mail).isoformat(),
        "source": source,
    }
    return mail


def clean(text: str) -> str:
    """Without NUL and lone surrogates, which neither Avro nor Postgres takes; lines end in "\\n"."""
    text = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    return _LONE_SURROGATE.sub("\ufffd", text)


def header(message: Message, name: str) -> str:
    """A header on one line, decoded as well as it can be; "" when there is none."""
    return " ".join(clean(str(message[name] or "")).split())


def parse_time(text: str) -> datetime | None:
    """The time of a Date header, with its zone, UTC where it names none; None when unreadable or not of this age."""
    try:
        found = parsedate_to_datetime(text)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found if 1980 <= found.astimezone(UTC).year <= 2100 else None
    except (ValueError, TypeError, IndexError, OverflowError, AttributeError):
        return None


def _parse(raw: bytes, mail: Mail) -> Message:
    try:
        return message_from_bytes(raw, policy=_POLICY)
    except (Exception, RecursionError):  # noqa: BLE001  e.g. a thousand parts within parts
        mail.oddities.add("unparsable_structure")
        head, _, body = raw.replace(b"\r\n", b"\n").partition(b"\n\n")
        known = [line for line in head.split(b"\n") if _KNOWN.match(line)]
        message = message_from_bytes(b"\n".join(known), policy=_POLICY)
        message.set_payload(_decode(body, ""))
        return message


def _message_id(message: Message, raw: bytes, mail: Mail) -> str:
    found = header(message, "Message-ID").strip("<> ")
    if found and len(found) <= 250:
        return found
    mail.oddities.add("no_message_id")
    return f"sha256.{sha256(raw.strip()).hexdigest()[:32]}"


def _time(message: Message, otherwise: datetime, mail: Mail) -> datetime:
    written = parse_time(header(message, "Date"))
    if written:
        return written
    mail.oddities.add("no_usable_date")
    received = parse_time(header(message, "Received").rpartition(";")[2])
    return received or otherwise


def _text(message: Message, mail: Mail) -> str:
    plain: list[str] = []
    html: list[str] = []
    for part in _leaves(message, mail):
        kind = _quietly(part.get_content_type, "text/plain")
        kind = "text/plain" if kind.startswith("multipart/") else kind  # one whose parts cannot be told apart
        if kind not in ("text/plain", "text/html") or _quietly(part.is_attachment, False):  # type: ignore[attr-defined]  # an EmailMessage's; the policy makes those
            continue
        (html if kind == "text/html" else plain).append(_content(part, mail))
    text = "\n\n".join(part for part in plain if part.strip())
    if not text and any(page.strip() for page in html):
        mail.oddities.add("html_only")
        text = "\n\n".join(text_of(page) for page in html)
    if not text.strip():
        mail.oddities.add("no_text")
    return text.strip()


def _leaves(message: Message, mail: Mail) -> Iterator[Message]:
    """The parts that hold content, in order; mails within the mail (bounces, digests) are attachments."""
    waiting, seen = [message], 0
    while waiting and seen < MAX_PARTS:
        part, seen = waiting.pop(), seen + 1
        mail.oddities.update(_word(defect) for defect in part.defects)
        inner = part.get_payload()
        if isinstance(inner, list):
            if _quietly(part.get_content_maintype, "text") != "message":
                waiting.extend(reversed([child for child in inner if isinstance(child, Message)]))
        else:
            yield part


def _content(part: Message, mail: Mail) -> str:
    try:
        payload = part.get_payload(decode=True)
    except Exception:  # noqa: BLE001  broken transfer encodings, again of any kind
        payload = None
    if not isinstance(payload, bytes):
        mail.oddities.add("undecodable_part")
        payload = str(part.get_payload()).encode("utf-8", "surrogateescape")
    charset = str(_quietly(part.get_content_charset, None) or "")
    if charset:
        mail.charsets.add(charset)
    text = _decode(payload, charset)
    if charset and not _decodes(payload, charset):
        mail.oddities.add("wrong_charset")
    return clean(text)


def _decode(payload: bytes, charset: str) -> str:
    for name in filter(None, (charset, "utf-8")):
        if _decodes(payload, name):
            return payload.decode(name)
    return payload.decode("cp1252", "replace")


def _decodes(payload: bytes, charset: str) -> bool:
    try:
        return isinstance(payload.decode(charset), str)
    except (LookupError, ValueError, TypeError):  # an unknown charset, bytes that are not of it, a codec not of text
        return False


def _quietly(ask: Any, otherwise: Any) -> Any:
    try:
        return ask()
    except Exception:  # noqa: BLE001  a broken Content-Type is no reason to lose the mail
        return otherwise


def _cut(text: str, mail: Mail) -> str:
    if len(text) <= MAX_TEXT:
        return text
    mail.oddities.add("cut")
    return f"{text[:MAX_TEXT]}\n[cut here: {len(text) - MAX_TEXT} more characters]"


def _word(defect: MessageDefect) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(defect).__name__.removesuffix("Defect")).lower()
