"""The services a command runs on: the user's own where the environment names them, else the project's local stack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farandole.project import Project
    from farandole.settings import Settings


def start(project: Project, say: Callable[[str], None]) -> Settings:
    """Settings with addresses; starts the local stack for those that are missing. It stays up."""
    from farandole.settings import load_settings
    from farandole.stack.stack import Stack

    if not has_services(project):
        Stack(project.data, say=say).up()
    return load_settings(project)


@contextmanager
def running(project: Project, say: Callable[[str], None]) -> Iterator[Settings]:
    """The same for a block; a stack that was started for it stops with it, however it ends."""
    from farandole.settings import load_settings
    from farandole.stack.stack import Stack

    if has_services(project):
        yield load_settings(project)
        return
    with Stack(project.data, say=say).running():
        yield load_settings(project)


def has_services(project: Project) -> bool:
    """Whether the environment or [tool.farandole] names both services; what a stack left behind does not count."""
    from farandole.origins import origins

    given = {row.variable for row in origins(project) if row.origin in ("environment", "pyproject")}
    return {"KAFKA_BOOTSTRAP_SERVERS", "DATABASE_URL"} <= given
