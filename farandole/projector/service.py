"""Starts a projector: the database and the projections are brought up to date, then the loop runs."""

from __future__ import annotations

import logging

from farandole import migrate, projections, topics
from farandole.project import Project
from farandole.projector.loop import Projector, Stop
from farandole.projector.partitions import pattern
from farandole.retention.upkeep import Upkeep
from farandole.settings import Settings

log = logging.getLogger("farandole.projector")


def run_projector(settings: Settings, project: Project | None, stop: Stop) -> None:
    """Fold until `stop` is set: the batch in hand is finished and the partitions are given back.

    Raises ConfigurationError for a projection that is wrong, Unreachable when broker or database do not answer at the
    start, Stopped when the database stays away longer than settings.outage_seconds.
    """
    found = projections.discover(project)
    migrate.migrate(settings)
    projections.install(settings, found, lambda name, what: log.info("projection projection=%s %s", name, what))
    _ensure_schema_topic(settings)
    log.info(
        "projector topics=%s group=%s projections=%s",
        pattern(settings),
        settings.group("projector"),
        ",".join(projection.name for projection in found),
    )
    with Upkeep(settings):
        Projector(settings, found, stop).run()


def _ensure_schema_topic(settings: Settings) -> None:
    """The schema topic and the topics of the runtime's own events. Others are found when somebody makes them."""
    if settings.create_topics:
        topics.ensure(settings, topics.of_events(settings, ()))
