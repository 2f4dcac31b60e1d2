"""A project's agents and projector as processes of their own, for a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr, TypeAdapter

from farandole.children import Children
from farandole.flow import agent_files, load_agents
from farandole.project import require_project
from farandole.settings import PREFIX, Settings


@contextmanager
def running_flow(
    settings: Settings, files: Sequence[Path | str] | None = None, *, projector: bool = True, root: Path | None = None
) -> Iterator[Children]:
    """Run agents (default: all of `agents/`), each as a process, and the projector, until the block ends.

    What they log is printed, so that pytest shows it when the test fails. `root` is the project (default: around the
    working folder).

    >>> async def test_a_job_is_done(farandole_settings: Settings) -> None:
    ...     with running_flow(farandole_settings):
    ...         async with Client(farandole_settings) as client:
    ...             job = await client.wait(await client.submit(Submitted(text="hello")))
    ...     assert job.status == "done"
    """
    project = require_project(root)
    paths = [Path(file) for file in files] if files is not None else agent_files(project)
    log: list[str] = []
    try:
        with Children(
            lambda name, line: log.append(f"{name}: {line}"), cwd=project.root, environment=environment(settings)
        ) as children:
            if projector:
                children.start("projector", ["projector"])
            for path, agent in load_agents(paths).items():
                children.start(agent.name, ["run", str(path)])
            yield children
    finally:
        print(*log, sep="\n")  # noqa: T201  pytest captures it


def environment(settings: Settings) -> dict[str, str]:
    """The variables that give another process these settings."""
    found: dict[str, str] = {}
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        # A table that is said wins over the project's.
        unset = isinstance(value, dict | BaseModel) and value == field.default
        if value is not None and not unset:
            found[str(field.validation_alias or PREFIX + name.upper())] = _text(value)
    return found


def _text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict | BaseModel):
        return TypeAdapter(Any).dump_json(value).decode()
    return str(value)
