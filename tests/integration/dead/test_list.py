"""Dead letters looked at: counted, filtered, shown whole, whatever bytes they hold."""

from __future__ import annotations

from pathlib import Path

from farandole import ids
from tests.eventually import eventually
from tests.integration.dead.conftest import Flow, encoded


def test_letters_are_counted_first_and_filtered(flow: Flow) -> None:
    assert "no dead letters" in flow.dead("list")
    flow.letters([(b"a", encoded("a")), (b"b", encoded("b")), (b"c", b"\0")])
    shown = flow.dead("list")
    head, lines = shown.split("job ", 1)
    assert [line.split()[:3] for line in head.splitlines()[1:3]] == [
        ["grump", "rejected", "2"],
        ["grump", "undecodable", "1"],
    ]
    assert lines.count("jobs.heard/") == 3
    assert "Reject: a: never" in lines
    assert max(map(len, shown.splitlines())) <= 110
    assert [letter["cause"] for letter in flow.json("list", "--cause", "undecodable")["letters"]] == ["undecodable"]
    job = ids.trace_id_of_key("jobs", "b")
    assert [letter["trace_id"] for letter in flow.json("list", "--job", job[:18])["letters"]] == [job]
    assert flow.json("list", "--agent", "nobody") == {"counts": [], "letters": []}
    assert flow.json("list", "--older-than", "1h")["letters"] == []
    assert len(flow.json("list", "--newer-than", "1h")["letters"]) == 3
    first = flow.json("list", "--limit", "1")
    assert sum(one["letters"] for one in first["counts"]) == 3
    assert len(first["letters"]) == 1
    assert "--older-than is '5 apples'" in flow.dead("list", "--older-than", "5 apples", code=2)


def test_a_letter_is_shown_whole_and_its_bytes_are_written_as_they_were(flow: Flow, tmp_path: Path) -> None:
    odd: list[tuple[str, bytes | None]] = [("plain", b"text"), ("odd", b"\xff\x1b[2J"), ("none", None)]
    value = encoded("\x1b[31mred")
    flow.letters([(b"good", value), (b"bad \x1b[2J", b"\x00\x1b[2J")], headers=odd)
    good, bad = ids.trace_id_of_key("jobs", "\x1b[31mred"), ids.trace_id_of_key("jobs", "bad \x1b[2J")
    shown = flow.dead("show", good[:18]) + flow.dead("show", bad) + flow.dead("list")
    assert "\x1b" not in shown
    for part in ("rejected", "header plain", "text", "0xff1b5b324a", "word", "grump.dead@0", "\\x1b[2J"):
        assert part in shown
    (row,) = flow.json("show", good)
    assert row["record"]["event"]["word"] == "\x1b[31mred"
    assert row["record"]["headers"][0] == ["plain", "text"]
    assert row["origin_topic"] == "jobs.heard"
    for job, whole in ((good, value), (bad, b"\x00\x1b[2J")):
        flow.dead("show", job, "--raw", str(tmp_path / "raw"))
        assert (tmp_path / "raw").read_bytes() == whole
    assert flow.json("show", row["event_id"]) == [row]
    assert "no job" in flow.dead("show", ids.new_trace_id(), code=4)


def test_what_the_projector_has_not_folded_yet_is_said(flow: Flow) -> None:
    flow.letters([(b"a", encoded("a"))])
    flow.rows("UPDATE projector_offset SET next_offset = 0 WHERE topic = 'jobs.dead_lettered' RETURNING 1")
    assert "the projector is behind: 1 dead letters on the log" in flow.dead("list")


def test_answered_letters_are_shown_with_what_became_of_them(flow: Flow) -> None:
    flow.letters([(b"a", encoded("a"))])
    flow.dead("redrive", "--yes", "--reason", "mended")
    eventually(lambda: flow.open() == 0, "the answer folded")
    (letter,) = flow.json("list", "--all")["letters"]
    assert (letter["answer"], letter["reason"]) == ("redriven", "mended")
    assert "redriven" in flow.dead("show", letter["event_id"])
