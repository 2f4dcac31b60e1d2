"""Starts a projector: the database and the projections are brought up to date, then the loop runs."""

from __future__ import annotations

import logging

from farandole import migrate, postgres, projections, topics
from farandole.errors import ConfigurationError
from farandole.project import Project
from farandole.projections import Projection
from farandole.projections.installing import finish
from farandole.projections.replacing import live
from farandole.projector.builds import Builds, said
from farandole.projector.loop import Projector, Stop
from farandole.projector.partitions import pattern
from farandole.settings import Settings

log = logging.getLogger("farandole.projector")


def run_projector(settings: Settings, project: Project | None, stop: Stop) -> None:
    """Fold until `stop` is set: the batch in hand is finished and the partitions are given back.

    Raises ConfigurationError when the core is wrong, Unreachable when broker or database do not answer at the
    start, Stopped when the database stays away longer than settings.outage_seconds.
    """
    found = projections.discover(project)
    migrate.migrate(settings)
    _register(settings, found)
    _ensure_schema_topic(settings)
    log.info(
        "projector topics=%s group=%s projections=%s",
        pattern(settings),
        settings.group("projector"),
        ",".join(projection.name for projection in found),
    )
    with Builds(settings):
        Projector(settings, stop).run()


def _register(settings: Settings, found: list[Projection]) -> None:
    """What the folders want is built in the background, but for the core: nothing is folded without it.

    Where nothing was logged yet there is nothing to do, and all are there at once.
    """
    with postgres.connect(settings, application="farandole projections") as connection:
        for problem in projections.register(connection, settings, found):
            log.error("projection_views: %s; the old views stay", problem)
        row = connection.execute("SELECT EXISTS (SELECT FROM event_log)").fetchone()
        begun = row is None or row[0]
        core_is_live = any(one.name == projections.CORE for one in live(connection))
        names = [one.name for one in found if not begun or (one.name == projections.CORE and not core_is_live)]
        failed = finish(connection, settings, names, said)
    if projections.CORE in failed:
        raise ConfigurationError(failed[projections.CORE])


def _ensure_schema_topic(settings: Settings) -> None:
    """The schema topic and the topics of the runtime's own events. Others are found when somebody makes them."""
    if settings.create_topics:
        topics.ensure(settings, topics.of_events(settings, ()))
