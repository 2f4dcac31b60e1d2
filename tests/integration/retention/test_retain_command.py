"""`farandole projector retain`: the policy in words, before and after; and what `farandole status` shows of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from farandole.cli import app
from farandole.cli.storage_view import storage_lines
from farandole.errors import FarandoleError
from farandole.health import look
from farandole.retention import forgetting, policy, sizes
from farandole.settings import Settings
from farandole.testing.flow import environment
from tests.integration.retention.old_jobs import NOW, Jobs
from tests.journeys import Submitted


@pytest.fixture
def here(farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in environment(farandole_settings).items():
        monkeypatch.setenv(variable, value)


def retain(*arguments: str, code: int = 0) -> str:
    ended = CliRunner().invoke(app, ["projector", "retain", *arguments])
    assert ended.exit_code == code, ended.output
    return " ".join(ended.output.split())


@pytest.mark.usefixtures("here")
def test_a_policy_is_looked_at_tried_and_carried_out(jobs: Jobs) -> None:
    # Given jobs that ended long before today's clock, by ids that tell no time, and one that has not
    gone = NOW - datetime.now(UTC) + timedelta(days=200)
    jobs.job(gone.days, keyed=True)
    running = jobs.job(gone.days, Submitted, keyed=True)

    assert retain() == "jobs are kept for ever"
    seen = retain("90d", "--dry-run")
    assert "would forget 1 jobs with 2 events" in seen and "for ever" in seen and running in seen
    assert len(jobs.left()) == 2

    told = retain("90d")
    assert "jobs are kept 90 days after their last event" in told and "forgot 1 jobs with 2 events" in told
    assert "stays for 1 job that has not ended: " + running in told
    assert jobs.left() == {running: 1}

    found: dict[str, Any] = json.loads(retain("--json"))
    assert (found["keep"], found["forgotten"], found["held"][0]["some"]) == ("90d", {"jobs": 1, "events": 2}, [running])
    assert "kept for ever" in retain("forever")
    assert policy.read(jobs.connection).keep is None


@pytest.mark.parametrize("text", ["12h", "0d", "-1d", "90", "d", "1.5d", "99999999d"])
def test_what_is_no_number_of_days_is_refused(text: str) -> None:
    with pytest.raises(FarandoleError, match=r"expected days, at least one, such as 90d; or forever"):
        policy.parse(text)


def test_sizes_policy_and_what_holds_it_up_are_in_the_standing(jobs: Jobs) -> None:
    running = jobs.job(100, Submitted)
    for _ in range(3):
        jobs.job(100)
    policy.store(jobs.connection, timedelta(days=30))
    forgetting.forget(jobs.settings, jobs.connection, timedelta(days=30), NOW)
    jobs.connection.execute("ANALYZE event_log; ANALYZE job")

    storage = look(jobs.settings, {}, oldest=0).projector.storage
    assert storage and storage == sizes.measure(jobs.connection)
    told = storage.as_dict()
    assert (told["event_log"]["rows"], told["job"]["rows"]) == (1, 1)
    assert told["event_log"]["table_bytes"] > 0 and told["event_log"]["index_bytes"] > 0
    assert {part["table"]: part["rows"] for part in told["event_log"]["partitions"]}["event_log_2031_03"] == 1
    assert told["retention"]["keep"] == "30d" and told["retention"]["held"][0]["some"] == [running]
    lines = list(storage_lines(storage))
    assert lines[0].startswith("event_log: about 1 events, ") and lines[-1].endswith(running)
