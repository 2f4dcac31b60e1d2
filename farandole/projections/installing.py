"""Brings projections to what their folders say, now, and refolds them; projectors do the same in the background."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from farandole import postgres
from farandole.errors import ConfigurationError, FarandoleError
from farandole.postgres import Connection
from farandole.projections.beside import stop_projectors
from farandole.projections.building import Builder, Progress
from farandole.projections.folders import CORE, Projection
from farandole.projections.registered import AGAIN, TRIES, Build, builds, register, want
from farandole.projections.replacing import live, remove
from farandole.retention import forgot_anything
from farandole.settings import Settings

LockNotAvailable = postgres.psycopg.errors.LockNotAvailable

#: Seconds between two looks at what another builder does.
LOOK = 0.2


def install(settings: Settings, projections: Sequence[Projection], progress: Progress | None = None) -> None:
    """Bring tables, rows and views to what the folders say; one that is new or has changed is built from the event log.

    Raises ConfigurationError, with file and line, for the first one that is wrong; the others are installed.
    """
    with postgres.connect(settings, application="farandole projections") as connection:
        problems = register(connection, settings, projections)
        names = [projection.name for projection in projections]
        problems += finish(connection, settings, names, progress or _silent).values()
    for problem in problems:
        raise ConfigurationError(problem)


def refold(
    settings: Settings,
    projections: Sequence[Projection],
    name: str | None = None,
    progress: Progress | None = None,
    *,
    from_what_is_left: bool = False,
) -> int:
    """Fold all of event_log again into `name` (default: every projection); returns the number of events.

    Readers see the old rows until it is done, projectors go on meanwhile. No effect runs: only SQL does. Once jobs were
    forgotten, what they added to other projections than the core is in the log no more: it must be asked for then.
    """
    with postgres.connect(settings, application="farandole projections") as connection:
        known = {one.name: one for one in [*live(connection), *projections]}
        chosen = [one for one in known.values() if name in (None, one.name)]
        if not chosen:
            raise ConfigurationError(f"no projection {name!r}; there are {', '.join(known)}")
        losing = [one.name for one in chosen if one.name != CORE]
        if losing and not from_what_is_left and forgot_anything(connection):
            raise ConfigurationError(
                f"jobs were forgotten (`farandole projector retain`): {', '.join(losing)} would lose what came of them;"
                " if that is meant, --from-what-is-left"
            )
        for one in chosen:
            want(connection, one, anew=True)
        failed = finish(connection, settings, [one.name for one in chosen], progress or _silent)
        row = connection.execute("SELECT count(*) FROM event_log").fetchone()
    for problem in failed.values():
        raise ConfigurationError(problem)
    return int(row[0]) if row else 0


def drop(settings: Settings, projections: Sequence[Projection], name: str) -> None:
    """Drop a projection that has no folder any more, with its tables and views.

    Raises ConfigurationError where it may not go: the core, one with a folder, one that others hang on; FarandoleError while
    somebody reads it.
    """
    with postgres.connect(settings, application="farandole projections") as connection:
        rows = connection.execute("SELECT name FROM projection UNION SELECT name FROM projection_build").fetchall()
        known = sorted(one for (one,) in rows)
        if name not in known:
            raise ConfigurationError(f"no projection {name!r} in the database; there are {', '.join(known)}")
        if name == CORE:
            raise ConfigurationError(f"{CORE} is what jobs are read from: it stays")
        if name in {projection.name for projection in projections}:
            folder = next(projection.where for projection in projections if projection.name == name)
            raise ConfigurationError(
                f"{name} would come again with the next projector: remove its folder {folder} first"
            )
        for _ in range(TRIES):
            try:
                with connection.transaction():
                    stop_projectors(connection)
                    remove(connection, name)
            except LockNotAvailable:
                time.sleep(AGAIN)
            else:
                return
    raise FarandoleError(f"somebody reads the tables of {name} in a transaction that is open; nothing was dropped")


def finish(connection: Connection[Any], settings: Settings, names: Sequence[str], progress: Progress) -> dict[str, str]:
    """Build until nothing of `names` is wanted any more, here or by whoever is at it; what failed, with the reason."""
    builder = Builder(settings, connection, progress)
    told = ""
    while pending := _pending(connection, names):
        with builder.alone() as mine, suppress(LockNotAvailable):  # a projector's batch takes long: try again
            if mine:
                builder.build_next()
                continue
        text = f"a projector builds it: {pending[0].folded} of about {pending[0].expected} events"
        if told != (told := text):
            progress(pending[0].projection.name, text)
        time.sleep(LOOK)
    return {
        build.projection.name: str(build.error)
        for build in builds(connection)
        if build.state == "failed" and build.projection.name in names
    }


def _pending(connection: Connection[Any], names: Sequence[str]) -> list[Build]:
    return [build for build in builds(connection) if build.state != "failed" and build.projection.name in names]


def _silent(_name: str, _what: str) -> None:
    pass
