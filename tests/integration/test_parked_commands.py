"""What a person does with parked records, at the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from farandole import postgres, reading
from farandole.cli import app
from farandole.errors import ExitCode
from farandole.postgres import Connection
from farandole.settings import Settings
from farandole.testing.flow import environment
from tests.integration.parking import Late, park, prepared, publish
from tests.integration.projection_tables import one
from tests.journeys import Log, Submitted, new_fact, written


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepared(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


@pytest.fixture
def command(farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Any:
    for variable, value in environment(farandole_settings).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("COLUMNS", "300")  # what is said is compared, not how it is cut to a screen

    def farandole(*arguments: str | Path, code: int = 0) -> str:
        ended = CliRunner().invoke(app, [*map(str, arguments)])
        assert ended.exit_code == code, ended.output
        return " ".join(ended.output.split()) if "--json" not in arguments else ended.stdout

    return farandole


def test_a_person_lists_shows_retries_and_discards(
    farandole_settings: Settings, database: Connection[Any], command: Any, tmp_path: Path
) -> None:
    fact, log = new_fact(Submitted), Log(farandole_settings)
    trace = fact.fields["trace_id"]
    records = [
        *written(log, [fact, new_fact(Late, cause=fact)]),
        log.put("jobs.done", 3, b"\xff\0\x1b[31m", trace.encode()),
    ]
    park(farandole_settings, records)

    listed = json.loads(command("parked", "list", "--json"))
    assert [(one["cause"], one["records"]) for one in listed["counts"]] == [("undecodable", 1), ("unknown_schema", 1)]
    assert [(one["partition"], one["offset"]) for one in listed["records"]] == [(0, 0), (3, 0)]
    assert "jobs.done/3@0 undecodable" in command("parked", "list", "--job", trace)
    assert "jobs.done/3@0: undecodable (the value starts with ff 00" in command("job", trace)
    assert "parked jobs.done/0@0: unknown_schema" in command("journey", trace)

    assert "ff 00 1b 5b 33 31 6d ...[31m" in command("parked", "show", "jobs.done/3@0", "--raw", tmp_path / "raw")
    assert (tmp_path / "raw").read_bytes() == b"\xff\0\x1b[31m"
    [shown] = json.loads(command("parked", "show", "jobs.done", "0", "0", "--json"))
    assert "farandole schemas publish" in shown["what_to_do"] and shown["key"] == trace
    assert "parked still: 1 unknown_schema" in command(
        "parked", "retry", "--topic", "jobs.done", "--cause", "unknown_schema", code=ExitCode.FAILED
    )
    publish(farandole_settings)
    assert "farandole parked retry jobs.done/0@0" in command("parked", "show", "jobs.done/0@0")
    assert "1 can be read, and would be folded" in command("parked", "retry", "--all", "--dry-run")
    told = {"folded": 1, "tried": 2, "already_in_the_log": 0, "left": {"undecodable": 1}}
    assert json.loads(command("parked", "retry", "--all", "--json", code=ExitCode.FAILED)) == told

    assert reading.troubles(database)["parked"] == 1
    found = reading.job(database, trace)
    assert found and found.parked == 1
    assert command("parked", "discard", "jobs.done/3@0", "--reason", "noise", "--yes") == "1 discarded"
    assert reading.troubles(database)["parked"] == 0
    found = reading.job(database, trace)
    assert found and found.parked == 0
    assert command("parked", "list") == "no parked records"
    assert "discarded" in command("parked", "list", "--discarded") and "noise" in command(
        "parked", "list", "--discarded"
    )
    assert "was discarded (noise)" in command("parked", "retry", "jobs.done/3@0", code=ExitCode.NOT_FOUND)
    command("parked", "retry", "jobs.done/3@0", "--discarded", code=ExitCode.FAILED)
    assert one(database, "SELECT value FROM parked WHERE discarded_at IS NOT NULL") == b"\xff\0\x1b[31m"


def test_a_job_of_parked_records_alone_is_found_by_them(
    farandole_settings: Settings, database: Connection[Any], command: Any
) -> None:
    fact = new_fact(Late)
    park(farandole_settings, written(Log(farandole_settings), [fact]))
    said = command("job", fact.fields["trace_id"], code=ExitCode.NOT_FOUND)
    assert "of its records jobs.done/0@0 is parked" in said


def test_nobody_takes_up_or_gives_up_everything_by_leaving_an_option_out(
    farandole_settings: Settings, database: Connection[Any], command: Any
) -> None:
    park(farandole_settings, [Log(farandole_settings).put("jobs.done", 0, b"junk")])
    assert "which records?" in command("parked", "retry", code=ExitCode.USAGE)
    assert "which records?" in command("parked", "discard", "--reason", "x", "--yes", code=ExitCode.USAGE)
    assert "--all leaves nothing to choose" in command(
        "parked", "retry", "--all", "--cause", "empty", code=ExitCode.USAGE
    )
    assert "expected TOPIC/PARTITION@OFFSET" in command("parked", "show", "jobs.done", "0", code=ExitCode.USAGE)
    assert "nobody is here to be asked" in command("parked", "discard", "--all", "--reason", "x", code=ExitCode.USAGE)
    assert "jobs.done/0@9 is not parked" in command("parked", "retry", "jobs.done/0@9", code=ExitCode.NOT_FOUND)
    command("parked", "show", "jobs.done/0@9", code=ExitCode.NOT_FOUND)
    assert one(database, "SELECT count(*) FROM parked WHERE discarded_at IS NULL") == 1
    assert command("parked", "retry", "--cause", "empty") == "no parked records"
