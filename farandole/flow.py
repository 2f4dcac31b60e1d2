"""What a project declares: the event classes in `schemas/` and the agents in `agents/`."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from farandole.agent import Agent, load_agent
from farandole.errors import ConfigurationError, FarandoleError
from farandole.event import Event, JobDeadLettered, JobDiscarded, JobFailed, JobRedriven
from farandole.project import Project, find_project

#: Part of every flow's contract, whatever a project declares: how a job ends that no agent ends by an event of its own.
RUNTIME_EVENTS: tuple[type[Event], ...] = (JobFailed, JobDeadLettered, JobRedriven, JobDiscarded)


def event_classes(project: Project) -> list[type[Event]]:
    """The event classes of `schemas/*.py`, in the order they are written, files by name; not the runtime's."""
    _activate(project)
    found: dict[str, type[Event]] = {event.avro_name(): event for event in RUNTIME_EVENTS}
    for path in sorted(project.schemas.glob("*.py")):
        module = _import(path)
        for event in vars(module).values():
            if not _is_own_event(event, module) or event.__event__.view:
                continue
            taken = {event.avro_name(), *event.__event__.aliases} & found.keys()
            if taken:
                raise ConfigurationError(
                    f"{path}: a second event class is called {min(taken)}; names are unique in a flow"
                )
            found |= dict.fromkeys((event.avro_name(), *event.__event__.aliases), event)
    return [event for event in dict.fromkeys(found.values()) if event not in RUNTIME_EVENTS]


def agent_files(project: Project) -> list[Path]:
    """The project's agents, by file name; names that start with _ or . are not agents."""
    return sorted(path for path in project.agents.glob("*.py") if path.name[0] not in "_.")


def load_agents(paths: Iterable[str | Path]) -> dict[Path, Agent]:
    """The agent in each file. Raises ConfigurationError naming file and line of one that does not load."""
    agents: dict[Path, Agent] = {}
    for path in map(Path, paths):
        project = find_project(path.resolve().parent)
        if project:
            _activate(project)
        with _naming(path):
            agent = load_agent(path)
        twin = next((other for other, known in agents.items() if known.name == agent.name), None)
        if twin:
            raise ConfigurationError(
                f"{path}: agent {agent.name!r} is also in {twin}; an agent's name is its consumer group"
            )
        agents[path] = agent
    return agents


def ingest_event(project: Project, name: str | None = None) -> type[Event]:
    """The event class that users submit: the only one declared with `ingest=True`, or the one called `name`."""
    events = event_classes(project)
    chosen = [event for event in events if (event.avro_name() == name if name else event.__event__.ingest)]
    if len(chosen) == 1:
        return chosen[0]
    known = ", ".join(event.avro_name() for event in events) or "none"
    if name:
        raise ConfigurationError(f"no event class {name!r} in {project.schemas}; there is: {known}")
    raise ConfigurationError(
        f"{len(chosen)} event classes with ingest=True in {project.schemas}; name one with --type (there is: {known})"
    )


def _is_own_event(value: object, module: ModuleType) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, Event)
        and value is not Event
        and value.__module__ == module.__name__
    )


def _import(path: Path) -> ModuleType:
    """Import `schemas/<name>.py` under the name agents use."""
    with _naming(path):
        return importlib.import_module(f"{path.parent.name}.{path.stem}")


def _activate(project: Project) -> None:
    """Put the project first; modules called like its own, of a project that was active before, give way."""
    project.activate()
    for folder in (project.schemas, project.agents):
        loaded = [name for name in sys.modules if name.split(".")[0] == folder.name]
        if any(not _lies_in(sys.modules[name], folder) for name in loaded):
            for name in loaded:
                del sys.modules[name]
    importlib.invalidate_caches()


def _lies_in(module: ModuleType, folder: Path) -> bool:
    places = [module.__file__] if getattr(module, "__file__", None) else list(getattr(module, "__path__", []))
    return all(Path(place or "").resolve().is_relative_to(folder.resolve()) for place in places)


class _naming:  # noqa: N801  reads as a word at the `with`
    """Turns what a user's file raises while it loads into one sentence with its file and line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, FarandoleError) or not isinstance(error, Exception):
            return
        if isinstance(error, SyntaxError):
            raise ConfigurationError(f"{error.filename or self.path}:{error.lineno}: {error.msg}") from error
        own = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).resolve() == self.path.resolve()
        ]
        line = f":{own[-1].lineno}" if own else ""
        raise ConfigurationError(f"{self.path}{line}: {type(error).__name__}: {error}") from error
