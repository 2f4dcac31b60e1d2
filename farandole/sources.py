"""What `farandole submit` reads: JSON Lines, CSV, a mail (.eml) or a mailbox (mbox), as rows, one by one.

Data files are taken as they stand; what they hold is checked later, against the event's class. Mails are repaired.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from farandole.errors import ExitCode, FarandoleError
from farandole.mail import read_mail
from farandole.mbox import mails

FORMATS = ("jsonl", "csv", "eml", "mbox")
_SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv",
    ".eml": "eml", ".mbox": "mbox", ".mbx": "mbox",
}  # fmt: skip

#: Bytes. A line or cell beyond this is a wrong file, not a record: a topic takes 1 MB.
MAX_LINE = 16_000_000

#: Bytes of one mail that are read; what lies beyond is attachments, or malice that would be parsed for minutes.
MAX_MAIL = 16_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a source: its fields, and where it stands, for errors."""

    place: str  #: such as "inbox.jsonl, line 12" or "inbox.mbox, mail 3"
    number: int  #: from 1: the line, or the mail
    fields: dict[str, Any]


def rows(path: Path | str, format: str | None = None) -> Iterator[Row]:
    """The records of the file at `path`, or of standard input when it is "-" (JSON Lines unless `format` is given).

    Args:
        format: one of `FORMATS`; by default the file's suffix says.

    Raises FarandoleError naming file and line (or mail) for what is not of the format.
    """
    name = "standard input" if str(path) == "-" else Path(path).name
    read = _READERS[_format(path, format)]
    with _opened(path) as (stream, modified):
        yield from read(stream, name, modified)


def _format(path: Path | str, given: str | None) -> str:
    found = given or ("jsonl" if str(path) == "-" else _SUFFIXES.get(Path(path).suffix.lower()))
    if found not in FORMATS:
        wrong = f"format {given!r} is unknown" if given else f"{path}: the suffix does not tell the format"
        raise FarandoleError(f"{wrong}; expected --format {', '.join(FORMATS)}", ExitCode.USAGE)
    return found


@contextmanager
def _opened(path: Path | str) -> Iterator[tuple[BinaryIO, datetime]]:
    """The bytes, and the time that a mail without one is given: the file's, or now for standard input."""
    if str(path) == "-":
        yield _own(sys.stdin.buffer), datetime.now(UTC).replace(microsecond=0)
        return
    try:
        stream = Path(path).open("rb")  # noqa: SIM115  closed below; only the opening is inside the try
        modified = datetime.fromtimestamp(int(Path(path).stat().st_mtime), UTC)
    except FileNotFoundError:
        raise FarandoleError(f"{path}: no such file", ExitCode.NOT_FOUND) from None
    except OSError as error:
        raise FarandoleError(f"{path}: cannot be read: {error.strerror}", ExitCode.NOT_FOUND) from error
    with stream:
        yield stream, modified


def _own(stdin: BinaryIO) -> BinaryIO:
    """A reader of our own: the interpreter could not end while a thread that waits for input holds the one of sys."""
    try:
        return open(stdin.fileno(), "rb", closefd=False)  # never closed: it may be read from then
    except io.UnsupportedOperation:  # a test's stand-in
        return stdin


def _lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            _wrong(name, number, f"longer than {MAX_LINE // 1_000_000} MB")
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            _wrong(name, number, f"not UTF-8: byte {line[error.start]:#04x} at position {error.start + 1}")


def _jsonl(stream: BinaryIO, name: str, _modified: datetime) -> Iterator[Row]:
    for number, line in _lines(stream, name):
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            hint = "" if number > 1 else "; expected JSON Lines, one object a line"
            _wrong(name, number, f"not JSON: {error or 'nested too deeply'}{hint}")
        if not isinstance(record, dict):
            _wrong(name, number, f'a JSON {type(record).__name__}; expected an object, as in {{"field": …}}')
        yield Row(_place(name, number), number, record)


def _csv(stream: BinaryIO, name: str, _modified: datetime) -> Iterator[Row]:
    """A header line, then one record a line; an empty cell leaves its field out, so that its default holds."""
    csv.field_size_limit(MAX_LINE)
    reader = csv.reader((line for _, line in _lines(stream, name)), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        if not all(header) or len(set(header)) != len(header) or not header:
            _wrong(name, 1, "no CSV header; expected the fields' names, each once, separated by commas")
        for cells in reader:
            if cells and len(cells) != len(header):
                _wrong(name, reader.line_num, f"{len(cells)} cells; the header names {len(header)}")
            if cells:
                fields = {field: cell for field, cell in zip(header, cells, strict=True) if cell}
                yield Row(_place(name, reader.line_num), reader.line_num, fields)
    except csv.Error as error:
        _wrong(name, reader.line_num, f"not CSV: {error}")


def _eml(stream: BinaryIO, name: str, modified: datetime) -> Iterator[Row]:
    raw = stream.read(MAX_MAIL)
    if not raw.strip():
        raise FarandoleError(f"{name}: empty; expected a mail")
    for _number, mail, delivered in mails(io.BytesIO(raw), MAX_MAIL, single=True):
        yield Row(name, 1, read_mail(mail, name, modified, delivered=delivered).fields)


def _mbox(stream: BinaryIO, name: str, modified: datetime) -> Iterator[Row]:
    number = 0
    for number, raw, delivered in mails(stream, MAX_MAIL):
        yield Row(f"{name}, mail {number}", number, read_mail(raw, name, modified, delivered=delivered).fields)
    if not number:
        raise FarandoleError(f"{name}: no mail in it; expected an mbox, whose mails start with a line 'From …'")


_READERS: dict[str, Callable[[BinaryIO, str, datetime], Iterator[Row]]] = {
    "jsonl": _jsonl, "csv": _csv, "eml": _eml, "mbox": _mbox,
}  # fmt: skip


def _place(name: str, number: int) -> str:
    return f"{name}, line {number}"


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _wrong(name: str, number: int, what: str) -> NoReturn:
    raise FarandoleError(f"{_place(name, number)}: {what}")
