"""What the terminal is given cannot command it, whatever the data says; and a closed pipe is quiet."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from rich.console import Console

from farandole.cli.console import as_json, cell, duration
from farandole.cli.views import job_panel, jobs_table, timeline
from farandole.logs import JsonLines, Lines
from farandole.reading import Job, JourneyRow
from farandole.safetext import clean

EVIL = "a\x1b]0;owned\x07b\x1b[2Jc\r\nd\u202etxt.exe\u2066\x9b31m\udc80[bold]e[/bold]"
TRACE = UUID("01890a5d-ac96-8b65-8a84-d00ed8b6d81e")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HARMFUL = {"\x1b", "\x07", "\r", "\x9b", "\u202e", "\u2066", "\udc80"}


def job(**changes: object) -> Job:
    values: dict[str, object] = {
        "trace_id": TRACE, "tenant": EVIL, "stage": EVIL, "status": "done", "data": {EVIL: {EVIL: EVIL, "n": [EVIL]}},
        "attempts": 1, "run": 0, "hop": 1, "events": 2, "dead_letters": 0, "conflicts": 0, "parked": 0,
        "created_at": NOW, "updated_at": NOW, "calls": 2, "tokens": 4120, "cost_micro_dollars": 3100,
    }  # fmt: skip
    return Job(**(values | changes))  # type: ignore[arg-type]


def row(since: float = 0, **changes: object) -> JourneyRow:
    values: dict[str, object] = dict.fromkeys(JourneyRow.__dataclass_fields__)
    values |= {
        "event_id": TRACE, "type": EVIL, "stage": EVIL, "emitted_by": EVIL, "attempt": 1, "run": 0, "hop": 0,
        "occurred_at": NOW, "since_start": timedelta(seconds=since), "took": None, "outcome": None, "body": None,
    }  # fmt: skip
    return JourneyRow(**(values | changes))  # type: ignore[arg-type]


def drawn(renderable: object, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(renderable)
    return out.getvalue()


@pytest.mark.parametrize(
    "view", [jobs_table([job()]), job_panel(job(), []), timeline(job(), [row(body={"decided_by": EVIL})], 100)]
)
def test_no_view_lets_data_command_the_terminal(view: object) -> None:
    assert not HARMFUL & set(drawn(view, width=4000))


def test_what_is_escaped_can_still_be_read() -> None:
    assert clean("a\x1b[31m\n\u202e") == "a\\x1b[31m\\n\\u202e"
    assert clean("žluťoučký 猫 🎉 [x]") == "žluťoučký 猫 🎉 [x]"


def test_markup_in_data_is_data() -> None:
    assert drawn(cell("[red]x[/red]")) == "[red]x[/red]\n"


def test_json_keeps_its_meaning_and_holds_nothing_harmful() -> None:
    text = as_json({"a": EVIL, "at": NOW}, indent=2)
    assert not HARMFUL & set(text)
    assert json.loads(text)["a"] == EVIL


@pytest.mark.parametrize("formatter", [Lines(), JsonLines()])
def test_a_log_entry_is_one_harmless_line(formatter: logging.Formatter) -> None:
    line = formatter.format(logging.LogRecord("farandole.x", logging.ERROR, "f", 1, "%s", (EVIL,), None))
    assert "\n" not in line
    assert not HARMFUL & set(line)


def test_a_timeline_fits_into_100_columns_and_shows_each_event_once() -> None:
    reason = {"reason": "no_order", "detail": "unknown"}
    spans = {"took": timedelta(seconds=3), "waited": timedelta(seconds=1), "worked": timedelta(seconds=2)}
    later = {"since": 3, "attempt": 2, **spans}
    rows = [
        row(0, stage="submitted", type="jobs.Submitted", emitted_by="client"),
        row(**later, stage="classified", type="jobs.Classified", emitted_by="classify 1.2"),  # type: ignore[arg-type]
        row(3.5, stage="failed", type="jobs.JobFailed", emitted_by="confirm", outcome="failed", body=reason),
    ]
    text = drawn(timeline(job(stage="failed", status="failed", tenant=None, data=None), rows, 100))
    assert max(map(len, text.splitlines())) <= 100
    assert [text.count(word) for word in ("Submitted", "Classified", "JobFailed")] == [1, 1, 1]
    assert "no_order: unknown" in text
    assert all(span in text for span in ("1.0 s", "2.0 s"))


def test_durations_are_short() -> None:
    assert [duration(timedelta(seconds=x)) for x in (0, 0.9994, 59.96, 3599, 90_061)] == [
        "0 ms",
        "999 ms",
        "60.0 s",
        "59 m 59 s",
        "25 h 01 m",
    ]


def test_a_job_that_went_through_shows_no_retry() -> None:
    shown = drawn(jobs_table([job(tenant=None, stage="done", events=5, attempts=5)])).splitlines()
    assert shown[0].split() == ["job", "stage", "status", "age", "idle", "events", "retries", "tenant"]
    assert shown[1].split()[-3:] == ["5", "0", "-"]
    assert "5, 2 retries, 0 dead letters" in drawn(job_panel(job(events=5, attempts=7), []))


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    command = f"{sys.executable} -m farandole config --json | true; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stderr == ""
    assert ended.stdout.strip() in ("0", "141")  # 0: it was done before the pipe closed
