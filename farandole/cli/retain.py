"""projector retain: how long jobs are kept after their last event."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farandole.cli.console import note, say, show_json
from farandole.cli.contract import Json
from farandole.cli.storage_view import held_lines, policy_line
from farandole.errors import ExitCode, FarandoleError

if TYPE_CHECKING:
    from farandole.postgres import Connection
    from farandole.retention.forgetting import Forgotten
    from farandole.retention.policy import Held, Policy
    from farandole.settings import Settings


def retain(
    keep: Annotated[
        str | None, typer.Argument(help="Days, such as 90d, or: forever. Default: show the policy.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would be forgotten.")] = False,
    json: Json = False,
) -> None:
    """Forget jobs that have ended (done or failed) this long after their last event, now and from now on.

    A job that has not ended is never forgotten. Whole months are dropped when the last day of the month is that long ago and
    nothing in it has to stay; jobs whose ids tell no time are deleted one by one.
    """
    from farandole import postgres
    from farandole.migrate import migrate
    from farandole.project import find_project
    from farandole.retention import policy
    from farandole.settings import load_settings

    wanted = None if keep is None else policy.parse(keep)
    settings = load_settings(find_project())
    migrate(settings)
    with postgres.connect(settings, application="farandole retain") as connection:
        before = policy.read(connection)
        days = before.keep if keep is None else wanted
        if keep is not None and not dry_run:
            policy.store(connection, wanted)
        found = (
            None if days is None or (keep is None and not dry_run) else _carry_out(settings, connection, days, dry_run)
        )
        standing = policy.read(connection)
    if json:
        show_json(standing.as_dict() | {"now": asdict(found) if found else None, "dry_run": dry_run})
        return
    _tell(standing, found, dry_run)


def _carry_out(settings: Settings, connection: Connection[Any], days: Any, dry_run: bool) -> Forgotten:
    from farandole import postgres
    from farandole.postgres import psycopg
    from farandole.retention import forgetting

    row = connection.execute("SELECT now()").fetchone()
    assert row is not None
    try:
        if dry_run:
            return forgetting.preview(connection, days, row[0])
        waiting = "another one is forgetting; waiting for it"
        with postgres.advisory_lock(connection, "upkeep", settings.schema_name, waiting=lambda: note(waiting)):
            return forgetting.forget(settings, connection, days, row[0])
    except psycopg.errors.UndefinedTable as error:
        raise FarandoleError(
            f"no projector has run here yet, there is nothing to forget: {error.diag.message_primary}", ExitCode.FAILED
        ) from error


def _tell(standing: Policy, found: Forgotten | None, dry_run: bool) -> None:
    say(policy_line(standing))
    if found is None:
        if standing.jobs:
            say(f"forgotten so far: {standing.jobs} jobs with {standing.events} events")
        _tell_held(standing.held)
        return
    would = "would forget" if dry_run else "forgot"
    months = f"; months dropped: {', '.join(found.dropped)}" if found.dropped else ""
    say(f"{would} {found.jobs} jobs with {found.events} events{months}")
    if found.put_off:
        note(f"not now: {found.put_off}; projectors try again", "yellow")
    _tell_held(found.held)


def _tell_held(held: list[Held]) -> None:
    for text in held_lines(held):
        say(text, "yellow")
