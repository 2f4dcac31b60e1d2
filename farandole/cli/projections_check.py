"""What `farandole projections check` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from farandole.cli.console import note, say, show_json
from farandole.cli.contract import opened
from farandole.errors import ExitCode

if TYPE_CHECKING:
    from farandole.projections.checking import Report
    from farandole.projections.checking.sample import Source


def run(names: Sequence[str], jobs: int, seed: int, events: Source, json: bool) -> None:
    """Check and print; exit code 1 when a projection has a fault."""
    from farandole.projections.checking import Options, check_all

    project, settings = opened()
    options = Options(jobs, seed, events)
    reports = []
    for report in check_all(settings, project, names, options):
        reports.append(report)
        if not json:
            _say(report)
    if json:
        show_json([report.as_json() for report in reports])
    failed = [report.projection for report in reports if not report.passed]
    if failed:
        note(f"not right as it stands: {', '.join(failed)}")
        raise typer.Exit(ExitCode.FAILED)


def _say(report: Report) -> None:
    from farandole.projections.checking.telling import lines

    styles = {"fault": "red", "warning": "yellow"}
    for number, line in enumerate(lines(report)):
        if number == 0:
            say(line, "green" if report.passed else "bold red")
        else:
            say(line, styles.get(line.split(" ")[0], ""))
    say("")
