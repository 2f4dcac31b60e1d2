"""demo: the project's example input through its agents, from nothing to finished jobs, with a look at what came out."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from farandole.cli.console import STATUS_STYLES, cell, note, say, screen, show
from farandole.errors import ConfigurationError, ExitCode, Stopped
from farandole.project import Project, require_project

if TYPE_CHECKING:
    from farandole.children import Children
    from farandole.settings import Settings
    from farandole.testing import MailSink

#: Jobs in the table at the end; `farandole jobs` shows the others.
TABLE_ROWS = 12

#: Lines of a process that are shown when it ends too early.
LAST_LINES = 15

#: Lines of a mail that are shown.
LINES_OF_A_MAIL = 3

ENDED = ("done", "failed", "blocked")


@dataclass(slots=True)
class Show:
    """What the demo has to say while it runs."""

    project: Project
    source: Path
    key: str | None
    started: float = field(default_factory=time.monotonic)
    lines: dict[str, deque[str]] = field(default_factory=dict)

    def hear(self, name: str, line: str) -> None:
        """Keep the last lines of each process, for when one ends too early."""
        self.lines.setdefault(name, deque(maxlen=LAST_LINES)).append(line)

    def step(self, what: str) -> None:
        """One line: what is done, and when."""
        note(f"{time.monotonic() - self.started:5.1f} s  {what}")

    def last_words(self, name: str) -> str:
        """The last lines of a process."""
        return "\n".join(f"    {line}" for line in self.lines.get(name, ()))


def demo(
    timeout: Annotated[float, typer.Option(min=1, help="Seconds until it gives up waiting for the jobs.")] = 120,
    down: Annotated[bool, typer.Option("--down", help="Stop the local stack at the end.")] = False,
) -> None:
    """Run the project's example: stack, agents, projector, the input that pyproject.toml names; then show the jobs."""
    from farandole.children import Children, interrupted
    from farandole.cli import local
    from farandole.flow import agent_files, load_agents

    project = require_project()
    run = Show(project, *_input(project))
    agents = load_agents(agent_files(project))
    with interrupted():
        settings = local.start(project, lambda text: note(text, "dim"))
        run.step(f"Kafka and Postgres are up ({settings.brokers})")
        with _sink(settings) as sink, Children(run.hear, cwd=project.root, environment=_mail(sink)) as children:
            children.start("projector", ["projector"])
            for path, agent in agents.items():
                children.start(agent.name, ["run", str(path)])
            run.step(f"{len(agents)} agents and a projector are starting, each a process of its own")
            note(f"         {_who_decides(settings)}", "dim")
            left = asyncio.run(_play(run, settings, children, timeout))
            _mails(run, sink)
            run.step("stopping the agents and the projector")
        if down:
            from farandole.stack.stack import Stack

            Stack(project.data).down()
    _what_next(run, down)
    if left:
        raise typer.Exit(ExitCode.TIMEOUT)


def _sink(settings: Settings) -> AbstractContextManager[MailSink | None]:
    """A mail server of the demo's own, unless the project's agents have one to send to."""
    from farandole.testing import MailSink

    return nullcontext() if settings.smtp_url else MailSink()


def _mail(sink: MailSink | None) -> dict[str, str]:
    return {"SMTP_URL": sink.url} if sink else {}


def _who_decides(settings: Settings) -> str:
    if settings.anthropic_api_key is None:
        ids = " and ".join(dict.fromkeys(settings.models.values())) or "models"
        return f"offline rules decide: set ANTHROPIC_API_KEY to ask {ids}"
    models = ", ".join(f"{name}: {model}" for name, model in settings.models.items()) or "those of the agents"
    return f"models decide ({models})"


def _mails(run: Show, sink: MailSink | None) -> None:
    """What the agents have sent; one mail in short."""
    if sink is None or not sink.mails:
        return
    run.step(
        f"{len(sink.mails)} mails were sent, to a mail server of this demo: nothing left the machine. The first one:"
    )
    first = sink.mails[0]
    for line in (f"To: {first.to}", f"Subject: {first.mail['Subject']}", *first.text.splitlines()[:LINES_OF_A_MAIL]):
        note(f"         | {line}", "dim")


def _input(project: Project) -> tuple[Path, str | None]:
    """The file to submit and the field that is its key, from [tool.farandole.demo]."""
    table = project.table.get("demo", {})
    if not isinstance(table, dict) or "input" not in table:
        raise ConfigurationError(
            f'{project.root / "pyproject.toml"}: no demo; expected [tool.farandole.demo] with input = "FILE" and, '
            'where jobs have a key, key = "FIELD"'
        )
    return project.root / str(table["input"]), table.get("key")


async def _play(run: Show, settings: Settings, children: Children, within: float) -> int:
    """Submit, watch, show. Returns how many jobs had not ended at the deadline."""
    from farandole.client import Client
    from farandole.flow import ingest_event
    from farandole.sources import rows
    from farandole.submissions import submissions

    async with Client(settings) as client:
        event = await asyncio.to_thread(ingest_event, run.project)
        checked = submissions(rows(run.source), event, key=run.key)
        trace_ids = [trace_id async for trace_id in client.submit_many(checked)]
        again = len(trace_ids) - len(set(trace_ids))
        twice = f" ({again} of {len(trace_ids)} rows repeat{'s' * (again == 1)} a key: the same job)" if again else ""
        run.step(f"{len(set(trace_ids))} jobs submitted from {run.source.relative_to(run.project.root)}{twice}")
        left = await _watch(run, settings, children, trace_ids, within)
    await asyncio.to_thread(_results, settings, trace_ids)
    return left


async def _watch(run: Show, settings: Settings, children: Children, trace_ids: list[UUID], within: float) -> int:
    """Draw how the jobs move until all have ended; raises Stopped when a process ends before that."""
    from rich.live import Live

    from farandole import postgres, reading

    wanted = set(trace_ids)
    deadline = time.monotonic() + within
    looks = 0
    with Live(console=screen(), transient=True) as live, postgres.connect(settings) as connection:
        while True:
            found = await asyncio.to_thread(reading.standing, connection, list(wanted))
            ended = sum(count for (_, status), count in found.items() if status in ENDED)
            live.update(_moving(found, len(wanted)), refresh=True)
            for name, code in children.ended().items():
                raise Stopped(f"{name} ended with code {code}; its last lines:\n{run.last_words(name)}")
            if ended == len(wanted) or time.monotonic() > deadline:
                break
            looks += 1
            await asyncio.sleep(0.1)
    run.step(f"{ended} of {len(wanted)} jobs have ended")
    if looks == 0:
        note("         they were submitted before: the same keys are the same jobs, and nothing ran twice", "dim")
    return len(wanted) - ended


def _moving(found: dict[tuple[str | None, str], int], total: int) -> Any:
    """A bar for each stage that holds jobs."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    waiting = total - sum(found.values())
    for (stage, status), count in [((("not seen yet"), "waiting"), waiting)] * (waiting > 0) + sorted(
        found.items(), key=str
    ):
        style = STATUS_STYLES.get(status, "")
        grid.add_row(
            cell(stage, style), cell(status, "dim"), Text("█" * max(1, round(40 * count / total)), style), cell(count)
        )
    return grid


def _results(settings: Settings, trace_ids: list[UUID]) -> None:
    """The job table, one journey, and who decided."""
    from farandole import paging, postgres, reading
    from farandole.cli.views import jobs_table, timeline

    with postgres.connect(settings) as connection:
        wanted = set(trace_ids)
        found = [job for job in paging.page(connection, paging.Filters(), limit=10_000).jobs if job.trace_id in wanted]
        if not found:
            return
        say("")
        found.sort(key=lambda job: job.status == "done")  # what a person should look at comes first
        show(jobs_table(found[:TABLE_ROWS], total=found))
        longest = max(found, key=lambda job: (job.status == "done", job.events, job.attempts))
        say("")
        show(timeline(longest, reading.journey(connection, longest.trace_id), screen().width))
        say("")


def _what_next(run: Show, down: bool) -> None:
    run.step("done")
    program = "farandole" if shutil.which("farandole") else os.path.relpath(Path(sys.executable).with_name("farandole"))
    again = f"{program} up && " if down else ""
    for command, why in (
        (f"{again}{program} jobs", "where every job is"),
        (f"{program} journey TRACE", "what happened to one; its first characters are enough"),
        (f"{program} graph", "who emits what, and who reads it"),
        (f"{program} dev", "run everything, and reload what you change in agents/"),
        (f"{program} down", "stop Kafka and Postgres; with --wipe their data goes too"),
    ):
        note(f"  {command:<{len(program) + 17}} {why}")
