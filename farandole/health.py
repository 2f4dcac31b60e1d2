"""Looks at how agents and the projector stand: offsets from the broker, all else from the database, each within bounds."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from farandole import gaps, lag, postgres, reading
from farandole.errors import FarandoleError
from farandole.gaps import Known, judge
from farandole.lag import Broker, Group, Place, Span
from farandole.postgres import dict_row, psycopg
from farandole.retention import sizes
from farandole.retention.sizes import Storage
from farandole.settings import Settings
from farandole.standing import ALIVE, AgentStanding, Gap, Lag, ProjectorStanding, Standing, Wait, Worker

_SQL = postgres.texts(__file__, "health_*.sql")

#: Seconds.
OLDEST = 8.0


@dataclass(slots=True)
class _Database:
    """What the database told; empty where it was never migrated."""

    workers: list[dict[str, Any]] = field(default_factory=list)
    waits: list[dict[str, Any]] = field(default_factory=list)
    dead_letters: list[dict[str, Any]] = field(default_factory=list)
    projector: list[dict[str, Any]] = field(default_factory=list)
    parked: list[dict[str, Any]] = field(default_factory=list)
    known: dict[tuple[str, str, int], Known] = field(default_factory=dict)
    suspended: dict[str, str] = field(default_factory=dict)
    storage: Storage | None = None


@dataclass(slots=True)
class _Log:
    """What the broker told. Names of topics are its own."""

    broker: Broker
    partitions: dict[str, int]
    groups: dict[str, Group] = field(default_factory=dict)
    spans: dict[Place, Span] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)


def look(
    settings: Settings, declared: Mapping[str, str], only: str | None = None, *, oldest: float = OLDEST
) -> Standing:
    """How everything stands. `declared` are the project's agents with their topics; `only` names one agent to look at.
    The ages of the oldest records are looked for `oldest` seconds, over all agents; 0: they are not.

    A broker or a database that does not answer leaves its part out, and is named in the result.
    """
    database, no_database = _Database(), None
    try:
        database = _ask_database(settings)
    except (FarandoleError, psycopg.Error) as failure:
        no_database = (str(failure).splitlines() or [type(failure).__name__])[0]
    names = {only} if only else {*declared, *_tabled(database)}
    log, no_broker = None, None
    try:
        topics = {*declared.values(), *(topic for agent, topic, _ in database.known if agent in names)}
        log = _ask_broker(settings, names, topics, only)
    except FarandoleError as failure:
        no_broker = str(failure)
    if log and not only:
        names |= {name for name in _stray(settings, log.partitions) if log.groups[settings.group(name)].offsets}
    standing = _Look(settings, database, log, time.monotonic() + oldest)
    agents = [standing.agent(name, declared.get(name), name in declared) for name in _in_order(names, declared)]
    return Standing(agents, standing.projector(), no_broker, no_database, standing.notes)


def _ask_database(settings: Settings) -> _Database:
    with postgres.connect(settings, application="farandole status") as connection:
        connection.execute("SELECT set_config('statement_timeout', %s, false)", (f"{lag.PATIENCE * 1000:.0f}",))
        found = _Database()
        try:
            with connection.cursor(row_factory=dict_row) as cursor:
                for name in ("workers", "waits", "dead_letters", "projector", "parked"):
                    rows = cursor.execute(_SQL[f"health_{name}"], {"flow": settings.flow}).fetchall()
                    setattr(found, name, rows)
            found.known = gaps.known(connection)
            found.suspended = reading.suspended(connection)
            found.storage = sizes.measure(connection)
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.InvalidSchemaName):
            pass  # nothing has been started yet, or an older version: there is nothing to tell
        return found


def _tabled(database: _Database) -> set[str]:
    rows = (*database.workers, *database.waits)
    return {row["agent"] for row in rows} | {agent for agent, _, _ in database.known}


def _stray(settings: Settings, partitions: Mapping[str, int]) -> set[str]:
    """Agents that have run here: each has a topic for its dead letters. The groups alone would name other people's."""
    found = set()
    for topic in partitions:
        name = settings.bare(topic).removesuffix(".dead")
        ours = topic == settings.topic(f"{name}.dead") and name != settings.flow
        if ours and re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
            found.add(name)
    return found


def _ask_broker(settings: Settings, names: set[str], read: set[str], only: str | None) -> _Log:
    """`read` are topics that are read by somebody, without the namespace; those of groups and of the flow come to them."""
    broker = Broker(settings)
    log = _Log(broker, broker.partitions())
    wanted = names if only else names | _stray(settings, log.partitions)
    log.groups = broker.groups(settings.group(name) for name in (*wanted, gaps.PROJECTOR))
    topics = {settings.topic(topic) for topic in read}
    topics |= {settings.topic(f"{name}.wake") for name in wanted}
    topics |= {topic for topic in log.partitions if topic.startswith(settings.topic(settings.flow) + ".")}
    topics |= {topic for group in log.groups.values() for topic, _ in group.offsets}
    there = {topic: log.partitions[topic] for topic in topics & log.partitions.keys()}
    log.spans = broker.ends((topic, number) for topic, count in there.items() for number in range(count))
    log.topic_ids = broker.topic_ids(there)
    return log


def _in_order(names: set[str], declared: Mapping[str, str]) -> list[str]:
    """The project's agents as it has them, then the others."""
    return [name for name in declared if name in names] + sorted(names - declared.keys())


@dataclass(slots=True)
class _Look:
    """Puts together what was told. Ages of oldest records are looked up until `deadline` (monotonic)."""

    settings: Settings
    database: _Database
    log: _Log | None
    deadline: float
    notes: list[str] = field(default_factory=list)

    def agent(self, name: str, topic: str | None, declared: bool) -> AgentStanding:
        data = self.database
        workers = [_worker(row) for row in data.workers if row["agent"] == name]
        waits = [
            Wait(row["kind"], row["count"], row["woken"], row["overdue"], row["next_due"])
            for row in data.waits
            if row["agent"] == name
        ]
        dead = {row["cause"]: row["count"] for row in data.dead_letters if row["agent"] == name}
        found = AgentStanding(name, declared, topic, workers=workers, waits=waits, dead_letters=dead)
        log = self.log
        kept = {(self.settings.topic(row[1]), row[2]): known for row, known in data.known.items() if row[0] == name}
        if log is None:
            stored = [self._gap(place, known.gap) for place, known in kept.items() if known.gap]
            return replace(found, gaps=stored)
        group, wake = log.groups[self.settings.group(name)], self.settings.topic(f"{name}.wake")
        topics = {self.settings.topic(topic)} if topic else {read for read, _ in (*group.offsets, *kept)} - {wake}
        gap_of = {place: self._why(known, group.offsets.get(place, -1), place) for place, known in kept.items()}
        stuck = [self._gap(place, reason) for place, reason in gap_of.items() if reason]
        settled = {place for place, reason in gap_of.items() if reason or kept[place].go_on_at is not None}
        stuck += [self._gap(*one) for one in self._out_of_range(group.offsets) if one[0] not in settled]
        return replace(
            found,
            topic=topic or next((self.settings.bare(one) for one in sorted(topics)), None),
            lag=self._lag(group.offsets, topics, name),
            wake_lag=self._lag(group.offsets, {wake}, name),
            members=group.members,
            gaps=stuck,
        )

    def projector(self) -> ProjectorStanding:
        data, topic = self.database, self.settings.topic
        offsets = {
            (topic(row["topic"]), row["partition"]): row["next_offset"]
            for row in data.projector
            if row["next_offset"] is not None
        }
        stuck = [Gap(row["topic"], row["partition"], row["gap"]) for row in data.projector if row["gap"]]
        parked = data.parked[0]["count"] if data.parked else None
        found = ProjectorStanding(None, None, stuck, data.suspended, parked, data.storage)
        if self.log is None or not data.projector:
            return found
        topics = {name for name in self.log.partitions if name.startswith(topic(self.settings.flow) + ".")}
        members = self.log.groups[self.settings.group(gaps.PROJECTOR)].members
        return replace(found, lag=self._lag(offsets, topics, "the projector"), members=members)

    def _lag(self, offsets: Mapping[Place, int], topics: set[str], who: str) -> Lag:
        log = self.log
        assert log is not None
        behind: dict[Place, tuple[int, int]] = {}
        for place, span in log.spans.items():
            position = max(offsets.get(place, span.low), span.low)
            if place[0] in topics and position < span.high:
                behind[place] = (position, span.high - position)
        oldest = self._oldest({place: position for place, (position, _) in behind.items()}, who)
        by_topic: dict[str, dict[int, int]] = {}
        for (topic, number), (_, records) in sorted(behind.items()):
            if oldest.get((topic, number), 0) is not None:  # else there is no record, only the ends of transactions
                by_topic.setdefault(self.settings.bare(topic), {})[number] = records
        total = sum(records for numbers in by_topic.values() for records in numbers.values())
        times = [at for at in oldest.values() if at is not None]
        return Lag(total, max(0.0, round(time.time() - min(times) / 1000, 3)) if times else None, by_topic)

    def _oldest(self, positions: dict[Place, int], who: str) -> dict[Place, int | None]:
        left = self.deadline - time.monotonic()
        found = (
            self.log.broker.oldest(positions, min(left, lag.PATIENCE)) if self.log and positions and left > 0 else {}
        )
        if len(found) < len(positions):
            missing = len(positions) - len(found)
            self.notes.append(
                f"how old the records are that {who} has not committed: {missing} partitions did not answer"
            )
        return found

    def _why(self, known: Known, committed: int, place: Place) -> str | None:
        assert self.log is not None
        return known.gap or judge(known, committed, self.log.topic_ids.get(place[0]))

    def _out_of_range(self, offsets: Mapping[Place, int]) -> list[tuple[Place, str]]:
        assert self.log is not None
        found = []
        for place, offset in offsets.items():
            span = self.log.spans.get(place)
            if span and not span.low <= offset <= span.high:
                found.append((place, f"it stands at offset {offset}, the log has {span.low} to {span.high}"))
        return found

    def _gap(self, place: Place, reason: str) -> Gap:
        return Gap(self.settings.bare(place[0]), place[1], reason)


def _worker(row: dict[str, Any]) -> Worker:
    vitals = dict(row["vitals"])
    state, alive = str(vitals.get("state", "?")), row["age"] < ALIVE
    if not alive and state != "stopped":
        state = "gone"
    seen = row["slot"], row["host"], row["pid"], row["started_at"], row["age"]
    return Worker(*seen, alive and state != "stopped", state, vitals.get("reason"), vitals)
