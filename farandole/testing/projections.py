"""`check_projection`: a projection that depends on order, batching or time fails a test."""

from __future__ import annotations

from pathlib import Path

from farandole.migrate import migrate
from farandole.project import find_project
from farandole.projections import CORE, discover, read
from farandole.projections.checking import Options, check, classes_of, text
from farandole.projections.checking.sample import Source
from farandole.settings import Settings


def check_projection(
    folder: Path | str, settings: Settings, *, jobs: int = 10, seed: int = 1, events: Source = "generated"
) -> None:
    """Raise AssertionError where `farandole projections check` would find a fault in `folder`, with the same text.

    Args:
        folder: of the projection, with tables.sql and fold.sql, such as "projections/stage_times".
        settings: of a database; it is migrated, and a schema of the check's own is made there and dropped.
        jobs: whose events are taken, from each source.
        seed: what is drawn by chance is the same for the same seed.
        events: "generated" from the event classes of the project around the folder, "real" from event_log, or "both".

    Raises ConfigurationError for a folder that is no projection, Unreachable when the database does not answer.

    >>> def test_stage_times_depends_on_no_order(farandole_settings: Settings) -> None:
    ...     check_projection("projections/stage_times", farandole_settings)
    """
    projection = read(Path(folder).resolve())
    project = find_project(Path(folder).resolve())
    core = next(found for found in discover(project) if found.name == CORE)
    migrate(settings)
    report = check(settings, projection, core, classes_of(project), Options(jobs, seed, events))
    if not report.passed:
        raise AssertionError(text(report))
