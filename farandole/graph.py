"""The choreography as a graph, read from annotations: who emits what, who reads it, and what cannot work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from farandole.agent import Agent
from farandole.contracts import views
from farandole.contracts.codec import contract
from farandole.contracts.deriving import derive, topic_of
from farandole.errors import ConfigurationError
from farandole.event import Event, JobFailed
from farandole.flow import RUNTIME_EVENTS


@dataclass(frozen=True, slots=True)
class Node:
    """One agent: event types by name; topics without the namespace."""

    name: str
    file: str
    topic: str
    reads: tuple[str, ...]
    emits: tuple[str, ...]
    reasons: tuple[str, ...] = ()  #: for which it may end a job by `Fail`

    @property
    def leads_to(self) -> tuple[str, ...]:
        """What it emits, and JobFailed where it declares reasons."""
        return (*self.emits, *((JobFailed.__name__,) if self.reasons else ()))


@dataclass(frozen=True, slots=True)
class Graph:
    """All agents of a project, where each event type lies, what users submit, and what is wrong (sentences)."""

    nodes: tuple[Node, ...]
    topics: dict[str, str]  #: of each event type
    ingest: tuple[str, ...]
    problems: tuple[str, ...]
    views: tuple[str, ...] = ()  #: event types that others emit, of which agents here read a part

    def readers(self, topic: str, types: Iterable[str]) -> list[Node]:
        """The agents that read any of `types` from `topic`."""
        return [node for node in self.nodes if node.topic == topic and set(types) & set(node.reads)]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        agents = [
            {"agent": node.name, "file": node.file, "topic": node.topic, "reads": node.reads, "emits": node.emits}
            | ({"fails": node.reasons} if node.reasons else {})
            for node in self.nodes
        ]
        told = {"agents": agents, "topics": self.topics, "ingest": self.ingest, "problems": self.problems}
        return told | ({"views": self.views} if self.views else {})


def build(agents: Mapping[Path, Agent], events: Iterable[type[Event]], flow: str) -> Graph:
    """The graph of `agents`; `events` are the project's classes (agents may know others)."""
    nodes: list[Node] = []
    own = [*events, *RUNTIME_EVENTS]
    known: list[type[Event]] = list(own)
    for path, agent in agents.items():
        wiring = agent.wiring(flow)
        known += [*wiring.handler.reads, *wiring.handler.emits]
        reads, emits = (
            tuple(event.avro_name() for event in kinds) for kinds in (wiring.handler.reads, wiring.handler.emits)
        )
        nodes.append(Node(agent.name, str(path), wiring.topic, reads, emits, tuple(map(str, agent.reasons or ()))))
    places: dict[str, set[str]] = {}
    for event in known:
        places.setdefault(event.avro_name(), set()).add(topic_of(event, flow))
    ingest = tuple(dict.fromkeys(event.avro_name() for event in known if event.__event__.ingest))
    here = {event.avro_name() for event in own}
    seen = dict.fromkeys(event.avro_name() for event in known if event.__event__.view)
    viewed = tuple(name for name in seen if name not in here)
    problems = [*_two_topics(places), *_nobody_emits(nodes, (*ingest, *viewed)), *_cycle(nodes)]
    problems += _misfits(known, own, flow)
    topics = {name: min(found) for name, found in places.items()}
    return Graph(tuple(nodes), topics, ingest, tuple(problems), viewed)


def mermaid(graph: Graph) -> str:
    """The graph in Mermaid's flowchart notation, as Markdown viewers draw it."""
    lines = ["flowchart LR"]
    used = {graph.topics[name] for node in graph.nodes for name in node.leads_to} | {node.topic for node in graph.nodes}
    used |= {graph.topics[name] for name in graph.ingest}
    lines += [f'  {_id("t", topic)}[/"{topic}"/]' for topic in sorted(used)]
    lines += [f'  {_id("a", node.name)}(["{node.name}"])' for node in graph.nodes]
    lines += [f"  users((users)) -- {name} --> {_id('t', graph.topics[name])}" for name in graph.ingest]
    lines += [f"  others((other projects)) -- {name} --> {_id('t', graph.topics[name])}" for name in graph.views]
    for node in graph.nodes:
        lines.append(f"  {_id('t', node.topic)} -- {' / '.join(node.reads)} --> {_id('a', node.name)}")
        lines += [f"  {_id('a', node.name)} -- {name} --> {_id('t', graph.topics[name])}" for name in node.leads_to]
    return "\n".join(lines)


def _id(kind: str, name: str) -> str:
    return f"{kind}_{''.join(c if c.isalnum() else '_' for c in name)}"


def _two_topics(places: Mapping[str, set[str]]) -> list[str]:
    return [
        f"event type {name} lies on {len(topics)} topics: {', '.join(sorted(topics))}; a type has one topic"
        for name, topics in places.items()
        if len(topics) > 1
    ]


def _misfits(known: Iterable[type[Event]], own: Iterable[type[Event]], flow: str) -> list[str]:
    """Views of this project's own events that those events do not fit, or that name none of them."""
    whole = {name: event for event in own for name in (event.avro_name(), *event.__event__.aliases)}
    owners = {topic_of(event, flow): event.avro_name() for event in own}
    problems: list[str] = []
    for event in dict.fromkeys(known):
        if event.__event__.view and event.avro_name() not in whole and (owner := owners.get(topic_of(event, flow))):
            problems.append(f"{event.__name__} is a view of {event.avro_name()}; {topic_of(event, flow)} has {owner}")
        if event.__event__.view and event.avro_name() in whole:
            try:
                views.misfit(contract(event, flow), derive(whole[event.avro_name()], flow))
            except ConfigurationError as error:
                problems.append(str(error))
    return problems


def _nobody_emits(nodes: Iterable[Node], ingest: Iterable[str]) -> list[str]:
    """Every agent may emit the runtime's events; users emit the ingest types, other projects what is viewed."""
    emitted = (
        {name for node in nodes for name in node.emits} | set(ingest) | {event.avro_name() for event in RUNTIME_EVENTS}
    )
    return [
        f"agent {node.name} ({node.file}) reads {name} from {node.topic}, which no agent emits and users do not submit"
        for node in nodes
        for name in node.reads
        if name not in emitted
    ]


def _cycle(nodes: Iterable[Node]) -> list[str]:
    """Declared emissions only: that any agent may fail or dead-letter is no loop."""
    before = {node.name: {other.name for other in nodes if set(other.emits) & set(node.reads)} for node in nodes}
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        loop = " -> ".join(error.args[1])
        return [f"a cycle without a hop limit: {loop}; a job could run for ever"]
    return []
