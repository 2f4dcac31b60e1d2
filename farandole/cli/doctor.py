"""doctor: whether everything a flow stands on is there, and what to do where it is not."""

from __future__ import annotations

from dataclasses import asdict

import typer

from farandole.cli.console import cell, show, show_json, table
from farandole.cli.contract import Json
from farandole.errors import ExitCode


def doctor(json: Json = False) -> None:
    """Check settings, agents, schemas, broker, topics, database, projections, parked records, work. Exit code 1: problems."""
    from farandole.doctor import examine

    findings = list(examine())
    if json:
        show_json([asdict(finding) for finding in findings])
    else:
        marks = {
            "ok": ("✓", "green"),
            "warning": ("!", "yellow"),
            "problem": ("✗", "bold red"),
            "skipped": ("-", "dim"),
        }
        view = table("", "check", "found", "what to do")
        for one in findings:
            view.add_row(
                cell(*marks[one.state]),
                cell(one.check),
                cell(one.found, "dim" if one.state == "skipped" else ""),
                cell(one.advice or ""),
            )
        show(view)
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(ExitCode.FAILED)
