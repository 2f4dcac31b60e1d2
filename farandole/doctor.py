"""Examines what a flow stands on: each check says what it found and, where that is a problem, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from farandole import kafka, postgres
from farandole.checks import project, registry, services, work
from farandole.errors import FarandoleError
from farandole.examination import Examination, Finding, Skip

Check = Callable[[Examination], Iterable[Finding]]

#: In an order in which each can use what those before it found.
CHECKS: tuple[Check, ...] = (
    project.check_project,
    project.check_settings,
    project.check_agents,
    project.check_schemas,
    services.check_broker,
    services.check_topics,
    registry.check_registry,
    services.check_database,
    services.check_migrations,
    work.check_projections,
    work.check_parked,
    work.check_work,
)


def examine() -> Iterator[Finding]:
    """Run every check; one that needs what could not be had is skipped, and says what that is."""
    state = Examination()
    for check in CHECKS:
        name = (check.__doc__ or check.__name__).split(":")[0]
        try:
            yield from check(state)
        except Skip as reason:
            yield Finding(name, "skipped", f"needs {reason}")
        except FarandoleError as error:
            yield Finding(name, "problem", str(error))
        except (kafka.KafkaException, postgres.psycopg.Error) as error:
            yield Finding(name, "problem", str(error).splitlines()[0], "see the log of the broker or the database")
    if state.database:
        state.database.close()
