"""dev: everything at once, in one terminal, with what you change reloaded."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from farandole.cli.console import note, screen
from farandole.project import Project, require_project
from farandole.safetext import clean

if TYPE_CHECKING:
    from farandole.children import Children

#: Of the names before each line, in the order in which processes start.
_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_yellow")

PROJECTOR = "projector"


def dev() -> None:
    """Run the stack, the projector and every agent; reload an agent when its file changes. Ctrl-C ends all of it."""
    from watchfiles import watch

    from farandole.children import Children, interrupted
    from farandole.cli import local

    project = require_project()
    printer = Printer()
    with interrupted(), local.running(project, lambda text: note(text, "dim")) as settings:
        note(f"Kafka {settings.brokers}; logs below, Ctrl-C ends everything")
        with Children(printer.print, cwd=project.root) as children:
            running = Running(project, children)
            running.start_all()
            folders = [folder for folder in (project.agents, project.schemas, project.projections) if folder.is_dir()]
            for changes in watch(*folders, rust_timeout=500, yield_on_timeout=True, raise_interrupt=True, debounce=300):
                for name, code in children.ended().items():
                    note(f"{name} ended with code {code}; it starts again when its file changes", "red")
                running.reload({Path(path) for _, path in changes})


class Running:
    """Which process runs which file."""

    def __init__(self, project: Project, children: Children) -> None:
        self._project = project
        self._children = children

    def start_all(self) -> None:
        """The projector and every agent."""
        self._children.start(PROJECTOR, [PROJECTOR])
        for path in self._agents():
            self._start(path)

    def reload(self, changed: Iterable[Path]) -> None:
        """Restart what a change concerns: an agent by its file, all by what they share, the projector by folds."""
        changed = {
            path.resolve() for path in changed if path.suffix in (".py", ".sql") and "__pycache__" not in path.parts
        }
        if not changed:
            return
        own = {path for path in changed if path.parent == self._project.agents and path.name[0] not in "_."}
        shared = {path for path in changed - own if path.suffix == ".py"}
        agents = set(self._agents())
        for path in agents | own if shared else own:
            if path.stem in self._children.pids:
                self._children.stop(path.stem)
            if path in agents:
                note(f"reloading {path.stem}", "bold")
                self._start(path)
        if any(self._project.projections in path.parents for path in changed):
            note("reloading the projector", "bold")
            self._children.stop(PROJECTOR)
            self._children.start(PROJECTOR, [PROJECTOR])

    def _agents(self) -> list[Path]:
        from farandole.flow import agent_files

        return agent_files(self._project)

    def _start(self, path: Path) -> None:
        self._children.start(path.stem, ["run", str(path)])


class Printer:
    """One readable log: each line with its process before it, whole lines only."""

    def __init__(self) -> None:
        self._console = screen(sys.stdout)
        self._colours: dict[str, str] = {}
        self._lock = threading.Lock()

    def print(self, name: str, line: str) -> None:
        """Called by many threads."""
        from rich.text import Text

        with self._lock:
            colour = self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
            style = "red" if " error " in line[:24] else "yellow" if " warning " in line[:24] else ""
            text = Text.assemble((f"{clean(name):<10} ", colour), (clean(line), style))
            self._console.print(text, soft_wrap=True)
