"""A stage is added to a running system by one file that subscribes a new consumer group; nothing else changes."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

from tests.acceptance.checker import TRIAGE, complaints
from tests.acceptance.mails import mails
from tests.acceptance.picture import Stage
from tests.acceptance.triage import Triage
from tests.commands import ROOT
from tests.eventually import eventually

EVENT = '''

class Translated(Event, topic="jobs.translated", stage="translated"):
    """The subject in English."""

    message_id: str
    subject: str
'''

AGENT = '''"""jobs.enriched -> jobs.translated: the subject in English."""

from farandole import Agent
from schemas.jobs import Enriched, Translated

agent = Agent("translate", inline=True)


@agent.handle
def translate(mail: Enriched) -> Translated:
    """Offline rules: English is what stands in brackets."""
    return Translated(message_id=mail.message_id, subject=f"[{mail.language}] {mail.subject}")
'''

TRANSLATE = Stage("translate", "jobs.enriched", frozenset({"jobs.Translated"}))
JOURNEY = ["submitted", "classified", "enriched", "acted", "translated", "done"]


def stages(system: Triage, job: str) -> list[str]:
    """In the order of the journey; act and translate work at the same time."""
    return [row[0] for row in system.rows("SELECT stage FROM journey WHERE trace_id = %s ORDER BY hop, stage", job)]


def test_a_new_agent_file_adds_its_stage_to_new_and_old_jobs_while_everything_else_runs_on(
    system: Triage, tmp_path: Path
) -> None:
    chosen = list(itertools.islice(mails(), 3))
    old = system.submit(chosen)
    system.settle(old, 60)
    processes = {name: command.process.pid for name, command in system.running.items()}
    assert all("translated" not in stages(system, job) for job in old)

    for name in ("agents", "schemas", "projections"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "schemas/jobs.py").open("a", encoding="utf-8") as classes:
        classes.write(EVENT)
    (tmp_path / "agents/translate.py").write_text(AGENT, encoding="utf-8")
    system.start("translate", root=tmp_path)

    for job in old:
        eventually(lambda job=job: "translated" in stages(system, job), f"translated; {system.last_words()}")  # type: ignore[misc]
    new = system.submit((f"new {key}", mail) for key, mail in chosen)
    system.settle(new, 60)
    for job in [*old, *new]:
        eventually(lambda job=job: sorted(stages(system, job)) == sorted(JOURNEY), f"all stages; {system.last_words()}")  # type: ignore[misc]

    rows = system.rows("SELECT status, stage, events, data->'translated'->>'subject', data->'enriched' FROM job_state")
    assert len(rows) == len(old) + len(new)
    for status, stage, events, subject, enriched in rows:
        assert (status, stage, events) == ("done", "done", 6), "what comes after the end leaves the job where it is"
        assert subject == f"[{enriched['language']}] {enriched['subject']}"
    assert {name: command.process.pid for name, command in system.running.items() if name != "translate"} == processes
    system.alive()
    assert complaints(system.picture((*TRIAGE, TRANSLATE)), (*TRIAGE, TRANSLATE)) == []
    assert not (ROOT / "agents/translate.py").exists()
