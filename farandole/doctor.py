"""Examines what a flow stands on: each check says what it found and, where that is a problem, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from farandole import (
    asking,
    flow,
    graph,
    health,
    kafka,
    migrate,
    postgres,
    projections,
    reading,
    schema_log,
    schemas,
    topics,
)
from farandole.brokers import suspects
from farandole.errors import FarandoleError
from farandole.examination import Examination, Finding, Skip, need
from farandole.flow import RUNTIME_EVENTS
from farandole.project import find_project, require_project
from farandole.settings import Settings, load_settings

#: The oldest Postgres whose SQL is used, as server_version_num; older brokers than 3.x lack what the clients need.
POSTGRES = 150_000


Check = Callable[[Examination], Iterable[Finding]]


def examine() -> Iterator[Finding]:
    """Run every check, in an order in which each can use what those before it found."""
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


#: Said of every 4.3 and 4.4, for a client cannot tell those that are mended.
_MARKERS = (
    "make sure that it is none of 4.3.0, 4.3.1 and 4.4.0: when a broker restarts, they can drop the markers of a "
    "transaction that is being committed (KAFKA-20734), whose events and positions then hang for ever"
)

#: What each count of trouble means for a person.
_TROUBLES = {
    "parked": "SELECT * FROM parked: records that are no events, with their bytes",
    "gaps": "farandole gaps list: partitions of the projector that stand still until you decide",
    "conflicts": "SELECT * FROM conflict: an id came with two contents; the first was kept",
    "blocked": "farandole dead list: their dead letters need a decision",
}


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
    """schemas: the .avsc files are those of the classes"""
    need(state.events is not None, "agents that load")
    drift = schemas.check(need(state.project, "a project"), need(state.settings, "settings").flow)
    for one in drift:
        yield Finding("schemas", "problem", f"{one.file.name}: {one.field} {one.what}", "farandole schemas write")
    if not drift:
        yield Finding(
            "schemas",
            "ok",
            f"{len(state.events or [])} event types of the project, {len(RUNTIME_EVENTS)} of the runtime",
        )


def check_broker(state: Examination) -> Iterator[Finding]:
    """broker: it answers"""
    settings = need(state.settings, "settings")
    known = kafka.check_broker(settings)
    state.broker = True
    yield Finding("broker", "ok", f"{settings.brokers}, {len(known)} topics")
    created = asking.broker_setting(settings, "auto.create.topics.enable")
    if created == "true":
        advice = "set auto.create.topics.enable=false on the broker: a typo in a topic's name makes a topic in silence"
        yield Finding("broker", "warning", "it creates topics by itself", advice)
    for release in suspects(settings):
        yield Finding("broker", "warning", f"it is a Kafka {release}; its last digit does not show", _MARKERS)


def check_topics(state: Examination) -> Iterator[Finding]:
    """topics: they exist as declared"""
    need(state.broker, "a broker")
    settings = need(state.settings, "settings")
    agents = need(state.agents, "agents that load")
    rows = topics.compare(settings, topics.of_agents(settings, agents.values()))
    for row in rows:
        compacted = row.topic == settings.topic(schema_log.SCHEMA_TOPIC) and row.setting == "cleanup.policy"
        if row.status == "missing":
            yield Finding(
                "topics",
                "warning",
                f"{row.topic} does not exist yet",
                "farandole topics (agents create theirs at start)",
            )
        elif compacted:
            what = f"{row.topic} is not compacted: schemas will expire, and old events become unreadable"
            yield Finding(
                "topics",
                "problem",
                what,
                f"kafka-configs --alter --add-config cleanup.policy=compact --topic {row.topic}",
            )
        elif row.status == "drift":
            yield Finding(
                "topics",
                "warning",
                f"{row.topic}: {row.setting} is {row.found}, declared {row.declared}",
                "change one of the two",
            )
    if all(row.status == "ok" for row in rows):
        yield Finding("topics", "ok", f"{len(rows)}, all as declared")


def check_database(state: Examination) -> Iterator[Finding]:
    """database: it answers, is new enough and keeps its sessions"""
    settings = need(state.settings, "settings")
    connection = postgres.connect(settings, application="farandole doctor")
    state.database = connection
    version = connection.info.server_version
    text = f"Postgres {version // 10_000}.{version % 10_000}"
    if version < POSTGRES:
        yield Finding("database", "problem", text, "Postgres 15 or newer is needed")
    elif not keeps_sessions(settings, connection):
        advice = "use session mode or connect past the pooler: slots and owners are session locks"
        yield Finding("database", "problem", f"{text}, behind a pooler in transaction mode", advice)
    else:
        yield Finding("database", "ok", text)


def keeps_sessions(settings: Settings, first: postgres.Connection[Any]) -> bool:
    """False behind a pooler in transaction mode: it gives what a session has set to whoever comes next."""
    first.execute("SELECT set_config('farandole.probe', 'mine', false)")
    with postgres.connect(settings, autocommit=False, application="farandole doctor") as second:
        second.execute("SELECT 1")  # an open transaction: a pooler has lent it the backend that served `first`
        row = first.execute("SELECT current_setting('farandole.probe', true)").fetchone()
    return row is not None and row[0] == "mine"


def check_migrations(state: Examination) -> Iterator[Finding]:
    """migrations: the tables are those of this version"""
    settings = need(state.settings, "settings")
    missing = migrate.missing(need(state.database, "a database"), settings)
    if missing:
        yield Finding(
            "migrations", "warning", f"{', '.join(missing)} not applied", "farandole migrate (workers do so at start)"
        )
    else:
        state.migrated = True
        yield Finding("migrations", "ok", f"schema {settings.schema_name}")


def check_projections(state: Examination) -> Iterator[Finding]:
    """projections: the folders are right and folded as they are now"""
    found = projections.discover(need(state.project, "a project"))
    folded = reading.projection_states(need(state.migrated and state.database, "a migrated database"))
    state.folded = projections.CORE in folded
    late = [one.name for one in found if folded.get(one.name, ("", None))[0] != one.hash]
    for name, (_, suspended) in folded.items():
        if suspended:
            yield Finding(
                "projections",
                "problem",
                f"{name} is suspended: {suspended}",
                f"mend it, then `farandole projections refold {name}`",
            )
    if late:
        yield Finding(
            "projections", "warning", f"not folded as they are now: {', '.join(late)}", "a projector does so at start"
        )
    else:
        yield Finding("projections", "ok", ", ".join(one.name for one in found))


def check_parked(state: Examination) -> Iterator[Finding]:
    """parked: no record was put aside, no partition stands still at a gap"""
    counts = reading.troubles(need(state.folded and state.database, "a projector that has run once"))
    for what, advice in _TROUBLES.items():
        count = counts[what]
        yield Finding(what, "warning" if count else "ok", str(count), advice if count else "")


def check_work(state: Examination) -> Iterator[Finding]:
    """work: who is behind has a worker, what is due was woken, nobody stands still"""
    settings, agents = need(state.settings, "settings"), need(state.agents, "agents that load")
    need(state.broker and state.migrated, "a broker and a migrated database")
    files = {agent.name: file for file, agent in agents.items()}
    found = health.look(settings, {agent.name: agent.wiring(settings.flow).topic for agent in agents.values()})
    findings = []
    for one in found.agents:
        if one.lag and one.lag.records and not one.members:
            advice = (
                f"farandole run {files[one.agent]}"
                if one.declared
                else "if the agent is no more, delete its group and its rows of agent_offset"
            )
            what = f"{one.agent} is {one.lag.records} records behind and has no worker"
            findings.append(Finding("work", "warning", what, advice))
        overdue = sum(wait.overdue for wait in one.waits)
        if overdue:
            what = f"{one.agent} has {overdue} waits that are due and not woken"
            findings.append(Finding("work", "warning", what, "a worker of the agent wakes them"))
        findings += [Finding("work", "problem", f"{one.agent}: {why}", "see `farandole status`") for why in one.still]
    yield from findings or [Finding("work", "ok", "nobody is behind without a worker, nobody stands still")]


CHECKS: tuple[Check, ...] = (
    check_project,
    check_settings,
    check_agents,
    check_schemas,
    check_broker,
    check_topics,
    check_database,
    check_migrations,
    check_projections,
    check_parked,
    check_work,
)

__all__ = ["CHECKS", "Finding", "examine", "keeps_sessions"]
