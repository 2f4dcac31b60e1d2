"""schemas: the derived Avro schemas, held against their classes and against every version that was released."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farandole.cli.console import note, say, show_json
from farandole.cli.contract import Json, opened
from farandole.cli.schemas_python import schemas_python
from farandole.cli.schemas_view import schemas_diff, schemas_show, told
from farandole.errors import ExitCode, FarandoleError

if TYPE_CHECKING:
    from farandole.contracts.evolution.releases import Report
    from farandole.contracts.files import Drift
    from farandole.project import Project

schemas = typer.Typer(
    no_args_is_help=True, help="The derived Avro schemas: write, check, release, retire, show, diff, publish, python."
)
schemas.command("show")(schemas_show)
schemas.command("diff")(schemas_diff)
schemas.command("python")(schemas_python)


@schemas.command("write")
def schemas_write() -> None:
    """Write one .avsc an event type into schemas/, derived from its class; remove those whose class is gone."""
    from farandole.contracts import files

    project, settings = opened()
    with _writing(project):
        touched = files.write(project, settings.flow)
    for path in touched:
        say(f"{'wrote' if path.exists() else 'removed'} {path.relative_to(project.root)}")
    if not touched:
        say("up to date")


@schemas.command("check")
def schemas_check(json: Json = False) -> None:
    """Exit code 1 when a .avsc differs from its class, or a class breaks readers or records of a released version."""
    from farandole.contracts import files
    from farandole.contracts.evolution import releases

    project, settings = opened()
    drift = files.check(project, settings.flow)
    report = releases.examine(project, files.derived(project, settings.flow).values())
    if json:
        show_json(_rows(project, drift, report))
    else:
        for one in drift:
            say(str(one).replace(f"{project.root}/", "", 1), "yellow")
        _say_findings(project, report)
        if drift and not report.broken:  # what breaks somebody is not to be written
            say("run `farandole schemas write` and commit what it wrote")
        elif not report.broken:
            fit = ", and fit every version that was released" if report.any else ""
            say(f"the schemas are those of the classes{fit}")
            _say_unreleased(report)
    if drift or report.broken:
        raise typer.Exit(ExitCode.FAILED)


@schemas.command("release")
def schemas_release() -> None:
    """Keep the schemas that changed, with example records, as the next released version; refused when one breaks anybody.

    Written to tests/golden/, for version control; nothing that was released is ever written again.
    """
    from farandole.contracts import files
    from farandole.contracts.evolution import releases

    project, settings = opened()
    wanted = list(files.derived(project, settings.flow).values())
    report = releases.examine(project, wanted)
    _say_findings(project, report)
    if report.broken:
        note("nothing was released")
        raise typer.Exit(ExitCode.FAILED)
    with _writing(project):
        for path in files.write(project, settings.flow):
            say(f"{'wrote' if path.exists() else 'removed'} {path.relative_to(project.root)}")
        made = releases.release(project, wanted)
    for name, version in made:
        say(f"released {name} version {version}")
    if not made:
        say("nothing has changed since the last release")


@schemas.command("retire")
def schemas_retire(
    name: Annotated[str, typer.Argument(help="An event type, with or without the flow's name.")],
    version: Annotated[
        int | None, typer.Argument(help="Default: all, of a type whose class is gone.", show_default=False)
    ] = None,
) -> None:
    """Note that no reader of this version, or an older one, runs any more. Their records must stay readable for ever."""
    from farandole.contracts import codec
    from farandole.contracts.evolution import releases
    from farandole.flow import event_classes

    project, settings = opened()
    full = name if "." in name else f"{settings.flow}.{name}"
    living = {one.writer.name for one in (codec.contract(event, settings.flow) for event in event_classes(project))}
    with _writing(project):
        up_to = releases.retire(project, full, version, living)
    say(f"{full}: readers up to version {up_to} no longer count; the records of all versions do")


@schemas.command("publish")
def schemas_publish() -> None:
    """Write the schemas to the schema topic, and to the Schema Registry if there is one: then any client can read the flow."""
    from farandole.contracts import publishing
    from farandole.flow import RUNTIME_EVENTS, event_classes

    project, settings = opened()
    events = [*event_classes(project), *RUNTIME_EVENTS]
    made = publishing.publish(settings, events, registering=True).values()
    places = {one.writer.fingerprint: publishing.place(settings, one) for one in made}
    for writer in publishing.writers(events, settings.flow):
        told = "payload only" if writer.missing else places[writer.fingerprint]
        say(f"{writer.fingerprint.hex()}  {writer.name}{f'  ({told})' if told else ''}")


@contextmanager
def _writing(project: Project) -> Iterator[None]:
    """Turns a folder that cannot be written to into a sentence."""
    try:
        yield
    except OSError as error:
        place = str(error.filename or project.root).removeprefix(f"{project.root}/")
        raise FarandoleError(f"{place} cannot be written: {error.strerror}") from error


def _say_findings(project: Project, report: Report) -> None:
    for one in report.damage:
        say(f"{one.file.relative_to(project.root)}: {one.what}", "yellow")
    for found in report.findings:
        for line in told(found.event, found.problem, found.breaks, found.versions):
            say(line, "" if line.startswith(" ") else "yellow")


def _say_unreleased(report: Report) -> None:
    if not report.any:
        note("no version was released yet: `farandole schemas release` keeps the first, for later ones to fit")
    elif report.unreleased:
        note(f"not released yet: {', '.join(report.unreleased)}; `farandole schemas release` before you deploy")


def _rows(project: Project, drift: list[Drift], report: Report) -> list[dict[str, Any]]:
    files = [{"file": one.file, "field": one.field, "what": one.what} for one in drift]
    files += [{"file": one.file, "field": "", "what": one.what} for one in report.damage]
    rows: list[dict[str, Any]] = [{**one, "file": str(one["file"].relative_to(project.root))} for one in files]  # type: ignore[attr-defined]  # paths among texts
    return rows + [
        {
            "file": f"schemas/{found.event}.avsc",
            "field": found.problem.field,
            "what": found.problem.what,
            "kind": found.problem.kind,
            "versions": found.versions,
            "breaks": found.breaks,
            "instead": found.problem.instead,
        }
        for found in report.findings
    ]
