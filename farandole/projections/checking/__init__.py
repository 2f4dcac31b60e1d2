"""Whether a projection's rows are the same for every order, batching and time: tried out, and the smallest case shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from farandole.errors import ConfigurationError
from farandole.event import Event
from farandole.flow import RUNTIME_EVENTS, event_classes
from farandole.migrate import migrate
from farandole.project import Project
from farandole.projections.checking.checker import Options, check
from farandole.projections.checking.findings import Counterexample, Finding, Report
from farandole.projections.checking.telling import text
from farandole.projections.folders import CORE, discover
from farandole.settings import Settings


def check_all(
    settings: Settings, project: Project | None, names: Sequence[str] = (), options: Options | None = None
) -> Iterator[Report]:
    """Check the named projections (default: every one of the project), one after the other.

    Raises ConfigurationError for an unknown name or no real events where only those are asked for, Unreachable.
    """
    found = discover(project)
    known = {projection.name: projection for projection in found}
    for name in names:
        if name not in known:
            raise ConfigurationError(f"no projection {name!r}; there are {', '.join(known)}")
    migrate(settings)
    classes = classes_of(project)
    for projection in [known[name] for name in names] or found:
        yield check(settings, projection, known[CORE], classes, options or Options())


def classes_of(project: Project | None) -> list[type[Event]]:
    """What events are drawn from: the project's classes, and the runtime's own."""
    return [*(event_classes(project) if project else ()), *RUNTIME_EVENTS]


__all__ = ["Counterexample", "Finding", "Options", "Report", "check", "check_all", "classes_of", "text"]
