"""What the project declares: its settings, its agents, its schemas; read from files alone."""

from __future__ import annotations

from collections.abc import Iterator

from farandole import flow, graph
from farandole.contracts import files
from farandole.contracts.evolution import releases
from farandole.examination import Examination, Finding, need
from farandole.flow import RUNTIME_EVENTS
from farandole.project import find_project, require_project
from farandole.settings import load_settings


def check_project(state: Examination) -> Iterator[Finding]:
    """project: found, active on sys.path"""
    state.project = require_project()
    yield Finding("project", "ok", str(state.project.root))


def check_settings(state: Examination) -> Iterator[Finding]:
    """settings: all known and of the right kind"""
    state.settings = load_settings(state.project or find_project())
    where = f"namespace {state.settings.namespace or '(none)'}, flow {state.settings.flow}"
    yield Finding("settings", "ok", where)


def check_agents(state: Examination) -> Iterator[Finding]:
    """agents: each file loads and its types fit together"""
    project, settings = need(state.project, "a project"), need(state.settings, "settings")
    state.events = flow.event_classes(project)
    state.agents = flow.load_agents(flow.agent_files(project))
    found = graph.build(state.agents, state.events, settings.flow)
    names = ", ".join(node.name for node in found.nodes)
    if not names:
        yield Finding("agents", "warning", f"none in {project.agents}", "an agent is a file in agents/")
    elif not found.problems:
        yield Finding("agents", "ok", names)
    for problem in found.problems:
        yield Finding("agents", "problem", problem, "see `farandole graph`")


def check_schemas(state: Examination) -> Iterator[Finding]:
    """schemas: the .avsc files are those of the classes, which break no released version"""
    need(state.events is not None, "agents that load")
    project, flow = need(state.project, "a project"), need(state.settings, "settings").flow
    drift, report = files.check(project, flow), releases.examine(project, files.derived(project, flow).values())
    for one in drift:
        yield Finding("schemas", "problem", f"{one.file.name}: {one.field} {one.what}", "farandole schemas write")
    if report.broken:
        yield Finding("schemas", "problem", "released versions do not fit the classes", "see `farandole schemas check`")
    elif not drift:
        yield Finding(
            "schemas",
            "ok",
            f"{len(state.events or [])} event types of the project, {len(RUNTIME_EVENTS)} of the runtime",
        )
