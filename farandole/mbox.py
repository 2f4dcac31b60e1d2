"""A mailbox as a stream of mails: never more than one of them in memory, however large the box."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO

#: "From sender Thu Aug 22 13:17:22 2002", perhaps with a zone; a body line that starts with "From " has no such time.
_POSTMARK = re.compile(
    rb"From .{0,300}? ([A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d{2}:\d{2}(?::\d{2})?(?: [A-Z+-]\w{0,5})? \d{4})"
)
_QUOTED = re.compile(rb">+From ")

#: Bytes read at once where a line does not end.
_LINE = 1_000_000


def mails(stream: BinaryIO, most: int, *, single: bool = False) -> Iterator[tuple[int, bytes, datetime | None]]:
    """Each mail's number from 1, its first `most` bytes without the "From " line, and the time that line tells (UTC).

    A line ">From " was quoted when the box was written, and loses one ">". With `single` the stream is one mail, and
    only a first line may be a postmark.
    """
    number, size, delivered = 0, 0, None
    parts: list[bytes] = []
    after_blank = True
    while line := stream.readline(_LINE):
        may_start = after_blank and line.startswith(b"From ") and not (single and parts)
        postmark = _POSTMARK.match(line) if may_start else None
        if postmark:
            if number:
                yield number, b"".join(parts), delivered
            number, size, parts, delivered = number + 1, 0, [], _time(postmark[1])
        elif number or single:
            number = number or 1
            if size < most:
                parts.append(line[1:] if not single and _QUOTED.match(line) else line)
            size += len(line)
        elif line.strip():
            return  # it does not start as a mailbox does
        after_blank = not line.strip(b"\r\n")
    if number:
        yield number, b"".join(parts), delivered


def _time(postmark: bytes) -> datetime | None:
    words = postmark.decode("ascii", "replace").split()
    clock = words[3] if words[3].count(":") == 2 else f"{words[3]}:00"
    try:
        return datetime.strptime(f"{words[1]} {words[2]} {clock} {words[-1]}", "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return None
