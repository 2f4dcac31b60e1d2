"""A namespace whose event log has partitions for the months before and after `old_jobs.NOW`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from farandole import migrate, postgres, projections
from farandole.project import find_project
from farandole.retention import partitions
from farandole.settings import Settings
from tests.integration.retention.old_jobs import NOW, Jobs
from tests.journeys import Log


@pytest.fixture
def jobs(farandole_settings: Settings) -> Iterator[Jobs]:
    migrate.migrate(farandole_settings)
    core = next(one for one in projections.discover(find_project()) if one.name == projections.CORE)
    projections.install(farandole_settings, [core])
    with postgres.connect(farandole_settings) as connection:
        partitions.make_ahead(connection, NOW - timedelta(days=100), monthly=True)
        partitions.make_ahead(connection, NOW, monthly=True)
        yield Jobs(farandole_settings, connection, Log(farandole_settings))
