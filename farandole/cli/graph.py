"""graph: the topology of the project, drawn, as Mermaid, as AsyncAPI; fails on what cannot work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from farandole.cli.console import cell, note, show, show_json
from farandole.cli.contract import Json, opened
from farandole.errors import ExitCode, FarandoleError

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from farandole.graph import Graph


def graph(
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid flowchart, for a README.")] = False,
    asyncapi: Annotated[
        bool, typer.Option("--asyncapi", help="As an AsyncAPI 3 document (JSON), for other teams and their tools.")
    ] = False,
    server: Annotated[
        list[str] | None,
        typer.Option("--server", help="NAME=HOST:PORT of a broker that the AsyncAPI document names; may be repeated."),
    ] = None,
    json: Json = False,
) -> None:
    """Draw who emits what and who reads it. Exit code 1: a topic nobody emits, a type on two topics, a cycle."""
    from farandole import graph as topology
    from farandole.flow import agent_files, event_classes, load_agents

    if server and not asyncapi:
        raise FarandoleError("--server is of the document that --asyncapi writes", ExitCode.USAGE)
    project, settings = opened()
    agents = {path.relative_to(project.root): agent for path, agent in load_agents(agent_files(project)).items()}
    events = event_classes(project)
    found = topology.build(agents, events, settings.flow)
    if asyncapi:
        from farandole.contracts.teams.asyncapi import about, document

        show_json(document(agents.values(), events, settings, about(project, settings, server or ())))
    elif json:
        show_json(found.as_dict())
    elif mermaid:
        typer.echo(topology.mermaid(found))
    else:
        show(drawn(found))
    for problem in found.problems:
        note(f"problem: {problem}", "bold red")
    if found.problems:
        raise typer.Exit(ExitCode.FAILED)


def drawn(graph: Graph) -> Tree:
    """The flow as a tree from what users submit; an agent that several topics lead to is drawn once."""
    from rich.tree import Tree

    root = Tree(cell("users", "bold"), guide_style="dim")
    seen: set[str] = set()
    for name in graph.ingest:
        _grow(graph, root, name, seen)
    for node in graph.nodes:
        if node.name not in seen:  # not reached from an ingest type
            foreign = set(node.reads) & set(graph.views)
            whose = ("emitted by another project", "cyan") if foreign else ("emitted by nobody known", "red")
            branch = root.add(_label((node.topic, "cyan"), (f"{' / '.join(node.reads)}, {whose[0]}", whose[1])))
            _agent(graph, branch, node.name, seen)
    return root


def _grow(graph: Graph, tree: Tree, event: str, seen: set[str]) -> None:
    branch = tree.add(_label((event, "bold cyan"), (graph.topics[event], "dim")))
    for node in graph.readers(graph.topics[event], [event]):
        _agent(graph, branch, node.name, seen)


def _agent(graph: Graph, tree: Tree, name: str, seen: set[str]) -> None:
    node = next(node for node in graph.nodes if node.name == name)
    if name in seen:
        tree.add(_label((name, "green"), ("drawn above", "dim")))
        return
    seen.add(name)
    branch = tree.add(_label((name, "bold green"), (node.file, "dim")))
    for event in node.leads_to:
        _grow(graph, branch, event, seen)


def _label(*parts: tuple[str, str]) -> Text:
    from rich.text import Text

    return Text("  ").join(cell(text, style) for text, style in parts)
