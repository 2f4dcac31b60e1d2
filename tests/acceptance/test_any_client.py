"""Any Kafka client produces, any Postgres client reads: the whole way without farandole at both ends."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.acceptance.checker import complaints
from tests.acceptance.triage import Triage
from tests.commands import ROOT, environment
from tests.eventually import eventually

SCRIPT = ROOT / "examples" / "produce_without_farandole.py"

#: What a reader of the database writes; in a namespace `farandole` is `<namespace>_farandole`.
JOB_OF_MAIL = """
SELECT job_state.*
FROM farandole.event_log JOIN farandole.job_state USING (trace_id)
WHERE type = 'jobs.Submitted' AND body->>'message_id' = %s
"""
JOB = "SELECT * FROM farandole.job_state WHERE trace_id = %s"
JOURNEY = "SELECT hop, stage, emitted_by, took, body FROM farandole.journey WHERE trace_id = %s"


@pytest.fixture(autouse=True, scope="module")
def contract() -> None:
    """The script reads the schema's file; it lies in the repository, else it is written as the README says."""
    if not (ROOT / "schemas" / "jobs.Submitted.avsc").exists():
        subprocess.run([sys.executable, "-m", "farandole", "schemas", "write"], cwd=ROOT, check=True, timeout=60)


def produce(system: Triage, *arguments: str) -> dict[str, str]:
    """Run the script as a user would; what it says it sent."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], cwd=ROOT, env=environment(system.settings), capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, str] = json.loads(done.stdout)
    return told


def ask(system: Triage, query: str, given: str) -> list[dict[str, Any]]:
    """psycopg and SQL, nothing else."""
    with psycopg.connect(system.settings.database, row_factory=dict_row) as database:
        return database.execute(query.replace("farandole.", f"{system.settings.schema_name}."), (given,)).fetchall()


def finished(system: Triage, query: str, given: str) -> dict[str, Any]:
    (job,) = eventually(
        lambda: [job for job in ask(system, query, given) if job["status"] in ("done", "failed", "blocked")],
        f"the job ended; {system.last_words()}",
    )
    return job


def test_the_script_imports_nothing_of_the_project() -> None:
    source = SCRIPT.read_text(encoding="utf-8")
    imported = [line.split()[1] for line in source.splitlines() if line.startswith(("import ", "from "))]
    assert set(imported) == {
        "argparse", "json", "os", "sys", "time", "uuid", "io", "pathlib", "typing", "fastavro", "confluent_kafka",
    }  # fmt: skip


def test_a_mail_with_the_whole_envelope_becomes_the_job_its_producer_named(system: Triage) -> None:
    told = produce(system)
    job = finished(system, JOB, told["key"])
    assert (job["status"], job["stage"], job["run"], job["events"], job["attempts"]) == ("done", "done", 0, 5, 5)
    assert set(job["data"]) == {"submitted", "classified", "enriched", "acted", "done"}
    assert job["data"]["submitted"]["message_id"] == told["message_id"]
    assert job["data"]["done"]["draft"]["to"]
    journey = ask(system, JOURNEY, told["key"])
    assert [row["stage"] for row in journey] == ["submitted", "classified", "enriched", "acted", "done"]
    assert [row["emitted_by"].split()[0] for row in journey] == ["elsewhere", "classify", "enrich", "act", "confirm"]
    assert [row["hop"] for row in journey] == [0, 1, 2, 3, 4]
    assert journey[0]["took"] is None
    assert all(row["took"].total_seconds() >= 0 for row in journey[1:])


def test_a_mail_without_an_envelope_becomes_the_job_of_its_key(system: Triage) -> None:
    told = produce(system, "--payload-only", "order A-10423, first mail")
    job = finished(system, JOB_OF_MAIL, told["message_id"])
    assert (job["status"], job["events"], job["conflicts"], job["parked"]) == ("done", 5, 0, 0)
    journey = ask(system, JOURNEY, job["trace_id"])
    assert [row["stage"] for row in journey] == ["submitted", "classified", "enriched", "acted", "done"]
    assert journey[0]["emitted_by"] == "unknown"
    assert journey[0]["body"]["source"] == "elsewhere"


def test_a_key_that_is_an_id_is_the_job_s_id(system: Triage) -> None:
    trace_id = "01890a5d-ac96-774b-bcce-b302099a8057"
    produce(system, "--payload-only", trace_id)
    assert finished(system, JOB, trace_id)["status"] == "done"


def test_nothing_was_lost_doubled_or_set_aside(system: Triage) -> None:
    assert complaints(system.picture()) == []
