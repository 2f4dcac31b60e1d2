"""Mails as they come: broken headers, wrong charsets, missing dates. None of them may raise, none may lose its text."""

from datetime import UTC, datetime
from typing import Any

import pytest

from farandole.html_text import text_of
from farandole.mail import MAX_TEXT, Mail, parse_time, read_mail

NOW = datetime(2026, 3, 9, 12, 0, tzinfo=UTC)


def read(raw: str | bytes) -> Mail:
    return read_mail(raw.encode() if isinstance(raw, str) else raw, "test", NOW)


def fields(raw: str | bytes) -> dict[str, Any]:
    return read(raw).fields


def test_a_plain_mail_gives_exactly_the_six_fields() -> None:
    raw = (
        "From: A customer <customer@example.com>\nSubject: Hello\nMessage-ID: <1@example.com>\n"
        "Date: Mon, 9 Mar 2026 10:00:00 +0100\n\nWhere is my order?\n"
    )
    assert fields(raw) == {
        "message_id": "1@example.com",
        "sender": "A customer <customer@example.com>",
        "subject": "Hello",
        "text": "Where is my order?",
        "received_at": "2026-03-09T10:00:00+01:00",
        "source": "test",
    }


def test_an_encoded_subject_is_decoded_and_put_on_one_line() -> None:
    assert fields("Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n  aus   dem Laden\n\n.")["subject"] == "Grüße aus dem Laden"


def test_a_subject_of_raw_bytes_is_read_as_utf_8_else_as_windows_1252() -> None:
    assert fields("Subject: Grüße\n\n.".encode())["subject"] == "Grüße"
    assert fields("Subject: Grüße\n\n.".encode("cp1252"))["subject"] == "Grüße"


def test_an_unknown_charset_is_guessed() -> None:
    mail = read("Content-Type: text/plain; charset=klingon-8\n\nschöne Grüße".encode("cp1252"))
    assert mail.fields["text"] == "schöne Grüße"
    assert (mail.charsets, mail.oddities & {"wrong_charset"}) == ({"klingon-8"}, {"wrong_charset"})


@pytest.mark.parametrize("charset", ["base64", "rot13", "hex", "idna", "undefined", "", "utf-16"])
def test_a_charset_that_names_a_codec_of_another_kind_does_no_harm(charset: str) -> None:
    text = fields(f"Content-Type: text/plain; charset={charset}\n\nhello there")["text"]
    assert text == "hello there" or charset == "utf-16"


def test_bytes_that_are_not_of_the_declared_charset_are_kept_as_well_as_they_can_be() -> None:
    assert fields(b"Content-Type: text/plain; charset=us-ascii\n\ncaf\xc3\xa9")["text"] == "café"
    assert fields(b"Content-Type: text/plain; charset=utf-8\n\ncaf\xe9")["text"] == "café"


def test_nul_and_lone_surrogates_never_reach_the_fields() -> None:
    mail = fields(b"Subject: a\0b\n\nx\0y \xed\xa0\xbd z")
    assert "\0" not in "".join(mail.values())
    assert "".join(mail.values()).encode()


def test_html_alone_becomes_text() -> None:
    mail = read("Content-Type: text/html\n\n<style>x{}</style><p>Hello&nbsp;there<br>my&#32;dear</p>")
    assert mail.fields["text"] == "Hello there\nmy dear"
    assert "html_only" in mail.oddities


MULTIPART = """\
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

the text
--b
Content-Type: text/html

<p>the page</p>
--b
Content-Type: text/plain
Content-Disposition: attachment; filename=log.txt

the attachment
--b
Content-Type: message/rfc822

Subject: inner

the inner mail
--b--
"""


def test_the_plain_parts_are_the_text_and_attachments_are_not() -> None:
    assert fields(MULTIPART)["text"] == "the text"


def test_a_multipart_that_never_ends_or_has_no_boundary_keeps_its_text() -> None:
    assert fields("Content-Type: multipart/mixed; boundary=b\n\n--b\n\nstill here")["text"] == "still here"
    assert fields("Content-Type: multipart/mixed\n\nstill here")["text"] == "still here"


def test_a_thousand_parts_within_parts_are_survived() -> None:
    nested = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(1500))
    assert fields(f"Subject: deep\n{nested}Content-Type: text/plain\n\ndown here")["subject"] == "deep"


def test_ten_thousand_empty_parts_are_survived() -> None:
    assert fields("Content-Type: multipart/mixed; boundary=b\n\n" + "--b\n\n" * 10_000)["text"] == ""


def test_broken_base64_and_quoted_printable_keep_what_can_be_read() -> None:
    assert "hello" in fields("Content-Transfer-Encoding: quoted-printable\n\nhello =ZZ = =3D")["text"]
    assert fields("Content-Transfer-Encoding: base64\n\naGVsbG8gdGhlcmU*\n")["text"].startswith("hello")
    assert fields("Content-Transfer-Encoding: x-own\n\nhello")["text"] == "hello"


@pytest.mark.parametrize("sender", ["<<<<", "(((((", '"""', "@", ",,,", ";:", "undisclosed:;", "=?utf-8?b?!?="])
def test_a_broken_from_line_is_kept_as_it_was_written(sender: str) -> None:
    mail = fields(f"From: {sender}\nMessage-ID: {sender}\nContent-Type: {sender}\n\nhello")
    assert mail["text"] == "hello"
    assert isinstance(mail["sender"], str)


def test_without_a_from_line_sender_and_return_path_stand_in() -> None:
    assert fields("Return-Path: <a@example.com>\n\n.")["sender"] == "<a@example.com>"
    assert fields("\nno headers at all")["sender"] == ""


def test_a_mail_without_a_message_id_is_named_by_its_content() -> None:
    first, again, other = (fields(f"Subject: x\n\n{text}")["message_id"] for text in ("one", "one", "two"))
    assert first == again != other
    assert first.startswith("sha256.")


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("Mon, 9 Mar 2026 10:00:00 +0530", "2026-03-09T10:00:00+05:30"),
        ("Mon, 9 Mar 2026 10:00:00 -0000", "2026-03-09T10:00:00+00:00"),
        ("Mon, 9 Mar 2026 10:00:00", "2026-03-09T10:00:00+00:00"),
        ("9 Mar 26 10:00 EST", "2026-03-09T10:00:00-05:00"),
        ("yesterday", None),
        ("Mon, 99 Mar 2026 10:00:00 +0000", None),
        ("Mon, 9 Mar 2026 10:00:00 +9999", None),
        ("Mon, 9 Mar 10000 10:00:00 +0000", None),
        ("Thu, 1 Jan 1970 00:00:00 +0000", None),
        ("Fri, 31 Dec 9999 23:59:59 -2300", None),
        ("", None),
    ],
)
def test_a_time_always_has_a_zone_or_is_not_believed(date: str, expected: str | None) -> None:
    found = parse_time(date)
    assert (found and found.isoformat()) == expected


def test_a_missing_date_gives_way_to_received_then_to_the_postmark_then_to_the_file() -> None:
    received = "Received: from a by b; Sun, 8 Mar 2026 09:00:00 +0000\n"
    postmark = datetime(2026, 3, 7, tzinfo=UTC)
    times = [
        read_mail(raw, "test", NOW, delivered=delivered).fields["received_at"]
        for raw, delivered in ((f"{received}\n.".encode(), postmark), (b"\n.", postmark), (b"\n.", None))
    ]
    assert times == ["2026-03-08T09:00:00+00:00", "2026-03-07T00:00:00+00:00", NOW.isoformat()]


def test_a_text_that_no_topic_takes_is_cut_and_says_so() -> None:
    text = fields("\n" + "word " * 100_000)["text"]
    assert len(text) < MAX_TEXT + 100
    assert text.endswith("more characters]")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", ["<", "<a ", "<!--", "</", '<a x="', "<script>", "&", "<![", "<?", "\n"])
def test_no_page_hangs_the_reader(unit: str) -> None:
    assert "the end" in text_of("the end" + unit * (300_000 // len(unit)))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["From", "Subject", "Content-Type", "Message-ID", "Date"])
@pytest.mark.parametrize("unit", ["(", '"', ",", "<", "a@b.c, ", "=?utf-8?q?a?= "])
def test_no_header_hangs_the_reader(name: str, unit: str) -> None:
    assert fields(f"{name}: {unit * 50_000}\n\nhello")["text"] == "hello"


@pytest.mark.parametrize("raw", [b"", b"\n", b"\0", b"\xff\xfe", b":", b": :\n:\n\n:", b"From ", b"\r\r", b"a" * 9_999])
def test_no_bytes_at_all_raise(raw: bytes) -> None:
    assert set(fields(raw)) == {"message_id", "sender", "subject", "text", "received_at", "source"}
