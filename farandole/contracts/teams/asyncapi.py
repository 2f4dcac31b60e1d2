"""The whole flow as an AsyncAPI 3 document: topics, events with their Avro schemas, and who sends and receives what."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from farandole import topics
from farandole.agent import Agent, Wiring
from farandole.contracts.avro import full_name
from farandole.contracts.deriving import derive, topic_of
from farandole.contracts.schema_log import SCHEMA_TOPIC
from farandole.contracts.teams import carried
from farandole.errors import ConfigurationError
from farandole.event import Event, JobDiscarded, JobRedriven
from farandole.flow import RUNTIME_EVENTS
from farandole.project import Project
from farandole.settings import Settings
from farandole.topics import Wanted

#: Nothing in the document needs 3.1; a tool that reads 3.1 reads this too.
VERSION = "3.0.0"
#: Of the Kafka bindings; each object that has one names it.
_BINDING = {"bindingVersion": "0.5.0"}

#: Where Confluent's framing has a schema's id, and how many bytes that has.
_IN_A_REGISTRY = {"schemaIdLocation": "payload", "schemaIdPayloadEncoding": "4"}
#: What Confluent calls the setting `subjects`.
_STRATEGIES = {"topic": "TopicNameStrategy", "record": "RecordNameStrategy", "topic-record": "TopicRecordNameStrategy"}

#: What events are on the wire, as the Avro project calls its binary form.
CONTENT_TYPE = "application/vnd.apache.avro;version=1.12.0"
#: The version of Avro's schema language that tools know by name; nothing that came after it is used.
SCHEMA_FORMAT = "application/vnd.apache.avro+json;version=1.9.0"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class About:
    """What a document says of its project."""

    title: str
    version: str
    description: str = ""
    servers: Mapping[str, str] = field(default_factory=dict)  #: host:port by the servers' names


def about(project: Project, settings: Settings, servers: Sequence[str] = ()) -> About:
    """From the project's pyproject.toml: its name, version and description; a project without them is its flow, version 0.

    `servers` are `NAME=HOST:PORT`. Raises ConfigurationError when one is not.
    """
    known = tomllib.loads((project.root / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    named: dict[str, str] = {}
    for server in servers:
        name, _, host = server.partition("=")
        parts = re.fullmatch(r"[A-Za-z0-9_-]+=[^/@\s]+:([0-9]{1,5})", server)
        if not parts or not 0 < int(parts[1]) < 65_536:
            raise ConfigurationError(
                f"server {name!r}: expected NAME=HOST:PORT, such as production=kafka.example.com:9092"
            )
        if name in named:
            raise ConfigurationError(
                f"server {name!r}: given twice; expected a name for each, one of several brokers does"
            )
        named[name] = host
    title, version = known.get("name", settings.flow), known.get("version", "0")
    return About(str(title), str(version), str(known.get("description", "")), named)


def document(agents: Iterable[Agent], events: Iterable[type[Event]], settings: Settings, info: About) -> Json:
    """The document, JSON-ready. Nothing of the settings but names, partitions and times to keep is told.

    `agents` and `events` are the project's; of two event classes of one name the first is told (`graph` complains of it).
    """
    agents = list(agents)
    wirings = [agent.wiring(settings.flow) for agent in agents]
    found: dict[str, type[Event]] = {}
    for event in (*events, *RUNTIME_EVENTS, *(event for one in wirings for event in (*one.handler.reads, *one.emits))):
        found.setdefault(_name(event), event)
    wanted = {one.name: one for one in topics.of_events(settings, found.values())}
    wanted |= {one.name: one for one in topics.of_agents(settings, agents)}
    messages = _messages(found.values(), agents, settings)
    return {
        "asyncapi": VERSION,
        "info": {
            "title": info.title,
            "version": info.version,
            "description": " ".join([info.description, _INFO.format(group=settings.group("projector"))]).strip(),
        },
        **({"servers": {name: _server(host) for name, host in info.servers.items()}} if info.servers else {}),
        "defaultContentType": CONTENT_TYPE,
        "channels": _channels(wanted.values(), found.values(), agents, settings),
        "operations": _operations(wirings, found.values(), settings),
        "components": {"messages": messages},
    }


_INFO = (
    "Events are facts; an agent is a consumer group that reads one topic and emits the next events. The projector (group "
    "{group}) reads every event topic besides."
)


def _name(event: type[Event]) -> str:
    return event.avro_name()


def _server(host: str) -> Json:
    return {"host": host, "protocol": "kafka"}


def _channels(
    wanted: Iterable[Wanted], events: Iterable[type[Event]], agents: Sequence[Agent], settings: Settings
) -> Json:
    """One a topic; an identifier is the topic's name without the namespace."""
    holds: dict[str, list[str]] = {SCHEMA_TOPIC: [carried.SCHEMA]}
    for event in events:
        names = holds.setdefault(topic_of(event, settings.flow), [])
        names += [_name(event), *([_bare(event)] if event.__event__.ingest else ())]
    for agent in agents:
        holds |= {agent.dead_topic: [carried.DEAD_LETTER], agent.wake_topic: [carried.WAKE]}
    return {
        topic.name: {
            "address": settings.topic(topic.name),
            "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in holds[topic.name]},
            "bindings": {"kafka": _topic(topic, settings)},
        }
        for topic in sorted(wanted, key=lambda one: one.name)
    }


def _topic(topic: Wanted, settings: Settings) -> Json:
    """The topic as it is declared, in the binding's types."""
    made = {name: [value] if name == "cleanup.policy" else int(value) for name, value in topic.config.items()}
    return {"partitions": topic.partitions, "replicas": settings.replication, "topicConfiguration": made, **_BINDING}


def _bare(event: type[Event]) -> str:
    return f"{_name(event)}.payload"


def _messages(events: Iterable[type[Event]], agents: Sequence[Agent], settings: Settings) -> Json:
    """One an event type; of what outsiders may write also the form without the envelope."""
    found: Json = {}
    for event in events:
        found[_name(event)] = _message(event, settings, envelope=True)
        if event.__event__.ingest:
            found[_bare(event)] = _message(event, settings, envelope=False)
    return found | carried.messages(with_agents=bool(agents))


def _message(event: type[Event], settings: Settings, *, envelope: bool) -> Json:
    schema = derive(event, settings.flow, envelope=envelope)
    declared, strategy = event.__event__, _STRATEGIES[settings.subjects]
    tags = {"stage": declared.stage, "ends the job as": declared.terminal}
    named = [f"{name}: {value}" for name, value in tags.items() if value]
    named += [name for name, given in (("blocks the job", declared.blocks), ("ingest", declared.ingest)) if given]
    return {
        "name": full_name(schema),
        "title": _name(event) if envelope else f"{_name(event)}, payload only",
        **({"summary": schema["doc"]} if "doc" in schema else {}),
        "description": f"{carried.PART} " * declared.view + (carried.FRAMING if envelope else carried.COMPLETED),
        "contentType": CONTENT_TYPE,
        "headers": carried.EVENT_HEADERS,
        "payload": {"schemaFormat": SCHEMA_FORMAT, "schema": schema},
        **({"correlationId": {"location": "$message.payload#/trace_id", "description": "the job"}} if envelope else {}),
        "bindings": {"kafka": {"key": carried.KEY, **_IN_A_REGISTRY, "schemaLookupStrategy": strategy, **_BINDING}},
        **({"tags": [{"name": name} for name in named]} if named else {}),
    }


def _operations(wirings: Sequence[Wiring], events: Iterable[type[Event]], settings: Settings) -> Json:
    """What goes in from outside, what each agent receives and sends, and what people decide of dead letters."""
    found: Json = {}
    for event in events:
        topic = topic_of(event, settings.flow)
        if event.__event__.ingest:
            one = _operation("receive", topic, [_name(event), _bare(event)], f"{_name(event)} comes in from outside")
            found[f"submit.{_name(event)}"] = one
    for wiring in wirings:
        found |= _agent(wiring, settings)
    for event, decision in ((JobRedriven, "given back to its agent"), (JobDiscarded, "given up")):
        topic = topic_of(event, settings.flow)
        found[f"dead.{_name(event)}"] = _operation("send", topic, [_name(event)], f"a dead letter is {decision}")
    return found


def _agent(wiring: Wiring, settings: Settings) -> Json:
    agent = wiring.agent
    group = {"groupId": {"type": "string", "enum": [settings.group(agent.name)]}}
    reads = [_name(event) for event in wiring.handler.reads]
    module = getattr(wiring.handler.function, "__globals__", {})
    said = str(module.get("__doc__") or f"agent {agent.name}").strip().partition("\n\n")[0]
    found = {
        f"{agent.name}.receive": _operation("receive", wiring.topic, reads, " ".join(said.split()), group),
        f"{agent.name}.wake": _operation(
            "receive", agent.wake_topic, [carried.WAKE], "what it put off comes back", group
        ),
        f"{agent.name}.dead": _operation("send", agent.dead_topic, [carried.DEAD_LETTER], "what it could not handle"),
    }
    sends: dict[str, list[str]] = {}
    for event in wiring.emits:
        sends.setdefault(topic_of(event, settings.flow), []).append(_name(event))
    for topic, names in sends.items():
        found[f"{agent.name}.send.{topic}"] = _operation("send", topic, names, f"{agent.name} emits {', '.join(names)}")
    return found


def _operation(action: str, topic: str, messages: Iterable[str], summary: str, kafka: Json | None = None) -> Json:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{topic}"},
        "messages": [{"$ref": f"#/channels/{topic}/messages/{name}"} for name in messages],
        "summary": summary,
        **({"bindings": {"kafka": {**kafka, **_BINDING}}} if kafka else {}),
    }
