"""The services that a flow stands on: whether broker and database answer, are fit for it, and hold what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from farandole import asking, kafka, migrate, postgres, topics
from farandole.brokers import suspects
from farandole.contracts import schema_log
from farandole.examination import Examination, Finding, need
from farandole.settings import Settings

#: The oldest Postgres whose SQL is used, as server_version_num; older brokers than 3.x lack what the clients need.
POSTGRES = 150_000

#: Said of every 4.3 and 4.4, for a client cannot tell those that are mended.
_MARKERS = (
    "make sure that it is none of 4.3.0, 4.3.1 and 4.4.0: when a broker restarts, they can drop the markers of a "
    "transaction that is being committed (KAFKA-20734), whose events and positions then hang for ever"
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
