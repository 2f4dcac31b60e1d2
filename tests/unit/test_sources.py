"""What `submit` reads: every format gives rows, every mistake names its file and line."""

import io
import sys
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from farandole.errors import FarandoleError
from farandole.mbox import mails
from farandole.sources import Row, rows


def given(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def mistake(path: Path, format: str | None = None) -> str:
    with pytest.raises(FarandoleError) as caught:
        list(rows(path, format))
    return str(caught.value)


def test_json_lines_are_rows_and_blank_lines_are_none(tmp_path: Path) -> None:
    path = given(tmp_path, "in.jsonl", '\ufeff{"a": 1}\n\n{"a": "zwei"}\r\n{"a": null}')
    assert list(rows(path)) == [
        Row("in.jsonl, line 1", 1, {"a": 1}),
        Row("in.jsonl, line 3", 3, {"a": "zwei"}),
        Row("in.jsonl, line 4", 4, {"a": None}),
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"a": 1}\n{"a": ', "in.jsonl, line 2: not JSON"),
        ("[1, 2]", "in.jsonl, line 1: a JSON list; expected an object"),
        ('"text"', "in.jsonl, line 1: a JSON str; expected an object"),
        ('{\n"a": 1}', "expected JSON Lines, one object a line"),
        ('{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": "caf\xe9"}', "in.jsonl, line 1: not UTF-8: byte 0xe9 at position 11"),
        ('{"a":' * 100_000, "in.jsonl, line 1: not JSON"),
    ],
)
def test_a_wrong_json_line_is_named(tmp_path: Path, content: str | bytes, expected: str) -> None:
    assert expected in mistake(given(tmp_path, "in.jsonl", content))


def test_rows_before_a_wrong_line_are_given_first(tmp_path: Path) -> None:
    reading = rows(given(tmp_path, "in.jsonl", '{"a": 1}\nwrong'))
    assert next(reading).fields == {"a": 1}
    with pytest.raises(FarandoleError, match="line 2"):
        next(reading)


def test_csv_cells_are_fields_and_an_empty_one_leaves_its_field_out(tmp_path: Path) -> None:
    path = given(tmp_path, "in.csv", 'message_id,subject,text\n1,"Hello, you","two\nlines"\n\n2,,"a ""b"""\n')
    assert [(row.number, row.fields) for row in rows(path)] == [
        (3, {"message_id": "1", "subject": "Hello, you", "text": "two\nlines"}),
        (5, {"message_id": "2", "text": 'a "b"'}),
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "in.csv, line 1: no CSV header"),
        ("a,,b\n1,2,3", "in.csv, line 1: no CSV header"),
        ("a,a\n1,2", "in.csv, line 1: no CSV header"),
        ("a,b\n1,2\n3", "in.csv, line 3: 1 cells; the header names 2"),
        ('a,b\n1,"open', "in.csv, line 2: not CSV"),
        (b"a,b\n1,\xff", "in.csv, line 2: not UTF-8"),
    ],
)
def test_a_wrong_csv_is_named(tmp_path: Path, content: str | bytes, expected: str) -> None:
    assert expected in mistake(given(tmp_path, "in.csv", content))


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    path = given(tmp_path, "in.csv", f"text\n{'x' * 500_000}\n")
    assert len(next(rows(path)).fields["text"]) == 500_000


def test_a_mail_file_is_one_row_with_its_own_time_or_the_files(tmp_path: Path) -> None:
    path = given(tmp_path, "one.eml", "Subject: Hello\n\nFrom here on it is text\n>From me\n")
    (row,) = rows(path)
    assert (row.fields["subject"], row.fields["source"]) == ("Hello", "one.eml")
    assert row.fields["text"] == "From here on it is text\n>From me"
    assert row.fields["received_at"].endswith("+00:00")


def test_an_empty_mail_file_is_a_mistake(tmp_path: Path) -> None:
    assert mistake(given(tmp_path, "one.eml", "\n")) == "one.eml: empty; expected a mail"


MBOX = """\
From a@example.com Mon Mar  9 10:00:00 2026
Message-ID: <1@example.com>

first
>From the start it was quoted
From here on it is still the first mail
and from here: From a@example.com

From b@example.com Mon Mar  9 11:00:00 +0100 2026
Message-ID: <2@example.com>
Date: Mon, 9 Mar 2026 09:00:00 +0000

second
"""


def test_a_mailbox_is_a_row_a_mail(tmp_path: Path) -> None:
    first, second = rows(given(tmp_path, "in.mbox", MBOX))
    assert first.place == "in.mbox, mail 1"
    assert first.fields["received_at"] == "2026-03-09T10:00:00+00:00"
    assert first.fields["text"].splitlines()[1] == "From the start it was quoted"
    assert (second.fields["message_id"], second.fields["text"]) == ("2@example.com", "second")
    assert second.fields["received_at"] == "2026-03-09T09:00:00+00:00"


def test_a_file_that_is_no_mailbox_is_a_mistake(tmp_path: Path) -> None:
    assert "no mail in it" in mistake(given(tmp_path, "in.mbox", "Subject: a mail, not a box\n\n."))
    assert "no mail in it" in mistake(given(tmp_path, "in.mbox", ""))


class Endless(io.RawIOBase):
    """A mailbox of `count` mails of a megabyte each, made while it is read; `made` says how many."""

    def __init__(self, count: int) -> None:
        line = b"x" * 999 + b"\n"
        self.mail = b"From a Mon Mar  9 10:00:00 2026\n\n" + line * 1000 + b"\n"
        self.count, self.made = count, 0
        self.rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        if not self.rest and self.made < self.count:
            self.made += 1
            self.rest = self.mail
        size = min(len(buffer), len(self.rest))
        buffer[:size], self.rest = self.rest[:size], self.rest[size:]
        return size


def test_a_mailbox_is_read_mail_by_mail() -> None:
    source = Endless(60)
    box = cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, source)))
    read_ahead = [source.made - number for number, _ in enumerate(mails(box, 16_000_000), start=1)]
    assert len(read_ahead) == 60
    assert max(read_ahead) <= 1, "a mail is given out before the one after the next is read"


def test_of_an_enormous_mail_only_the_beginning_is_kept() -> None:
    (one,) = mails(io.BytesIO(b"From a Mon Mar  9 10:00:00 2026\n\n" + b"x" * 5_000_000), 1_000_000)
    assert len(one[1]) <= 2_000_000


def test_the_suffix_tells_the_format_unless_it_is_given(tmp_path: Path) -> None:
    path = given(tmp_path, "in.data", '{"a": 1}')
    assert "in.data: the suffix does not tell the format; expected --format jsonl, csv, eml, mbox" in mistake(path)
    assert [row.fields for row in rows(path, "jsonl")] == [{"a": 1}]
    assert "format 'xml' is unknown" in mistake(path, "xml")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    assert mistake(tmp_path / "none.jsonl").endswith("none.jsonl: no such file")
    (tmp_path / "folder.csv").mkdir()
    assert "cannot be read" in mistake(tmp_path / "folder.csv")


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": 1}\nwrong')))
    reading = rows("-")
    assert next(reading) == Row("standard input, line 1", 1, {"a": 1})
    with pytest.raises(FarandoleError, match="standard input, line 2"):
        next(reading)
