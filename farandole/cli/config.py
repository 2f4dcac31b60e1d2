"""config: every setting, its value, and where that came from."""

from __future__ import annotations

from dataclasses import asdict

from farandole.cli.console import cell, show, show_json, table
from farandole.cli.contract import Json
from farandole.project import find_project


def config(json: Json = False) -> None:
    """Show every setting, its value and its origin (environment, pyproject, stack, default); secrets are masked."""
    from farandole.origins import origins

    project = find_project()
    rows = origins(project)
    if json:
        show_json([asdict(row) for row in rows])
        return
    styles = {"environment": "yellow", "pyproject": "cyan", "stack": "green", "default": "dim"}
    view = table("setting", "value", "from", "meaning")
    for row in rows:
        view.add_row(
            cell(row.variable), cell(row.value or None), cell(row.origin, styles[row.origin]), cell(row.meaning, "dim")
        )
    show(view)
    if project:
        show(cell(f"project {project.root}", "dim"))
