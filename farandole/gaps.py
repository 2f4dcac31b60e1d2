"""Gaps: places where the log and a reader's position do not fit together, so that a person must say where to go on.

Reading on by itself would skip records in silence, or handle all of them once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from farandole import lag
from farandole.errors import ExitCode, FarandoleError
from farandole.postgres import Connection, texts
from farandole.settings import Settings
from farandole.standing import AgentStanding, Standing

#: The name under which the projector's gaps are listed and accepted; no agent can have it.
PROJECTOR = "projector"

_SQL = texts(__file__, "gaps_*.sql")


@dataclass(frozen=True, slots=True)
class Known:
    """What is kept of one partition of an agent, beside the offset in Kafka."""

    topic_id: str | None = None  #: Kafka's; a recreated topic has another
    position: int | None = None  #: committed when it was last assigned; None: no offset ever was
    gap: str | None = None
    go_on_at: int | None = None  #: a person's decision that no worker has taken up yet


@dataclass(frozen=True, slots=True)
class Gap:
    """One place that waits for a person; the topic is without the namespace."""

    agent: str
    topic: str
    partition: int
    reason: str


def judge(known: Known | None, committed: int, topic_id: str | None) -> str | None:
    """Why an agent must not read on from `committed` (negative: Kafka has no offset); None when it may.

    `topic_id` is the topic's present one, None where the broker does not tell. A group that was never here has no `known`
    and no offset; a known one without an offset has lost it, as happens when a group had no member for a week.

    >>> judge(None, -1001, "a"), judge(Known("a", 7), 9, "a")
    (None, None)
    >>> judge(Known("a", 7), -1001, "a")
    'its offset, 7 when last seen, is no longer in Kafka: offsets of a group without members expire'
    >>> judge(Known("a", 7), 9, "b")
    'the topic was deleted and made again (id a, now b): offset 9 was meant for the old one'
    """
    if known is None or known.go_on_at is not None:
        return None
    if known.topic_id and topic_id and known.topic_id != topic_id:
        meant = committed if committed >= 0 else known.position
        ids = f"id {known.topic_id}, now {topic_id}"
        return f"the topic was deleted and made again ({ids}): offset {meant} was meant for the old one"
    if committed < 0 and known.position is not None:
        seen = f"its offset, {known.position} when last seen, is no longer in Kafka"
        return f"{seen}: offsets of a group without members expire"
    return None


def known(connection: Connection[Any], agent: str | None = None) -> dict[tuple[str, str, int], Known]:
    """What is known of the offsets of `agent`, or of all, by agent, topic (without the namespace) and partition."""
    rows = connection.execute(_SQL["gaps_agents"], {"agent": agent})
    return {(row[0], row[1], row[2]): Known(*row[3:7]) for row in rows}


def of_projector(connection: Connection[Any]) -> dict[Gap, int | None]:
    """The partitions at which the projector has stopped, and the offset it would have read next."""
    rows = connection.execute(_SQL["gaps_projector"]).fetchall()
    return {Gap(PROJECTOR, topic, partition, reason): position for topic, partition, position, reason in rows}


def listed(standing: Standing) -> list[Gap]:
    """The gaps that agents and the projector have stopped at, and those at which an agent would stop if it ran."""
    stuck = [*((one.agent, one.gaps) for one in standing.agents), (PROJECTOR, standing.projector.gaps)]
    return [Gap(who, gap.topic, gap.partition, gap.reason) for who, gaps in stuck for gap in gaps]


def chosen(standing: Standing, agent: str, topic: str | None, partition: int | None) -> list[Gap]:
    """The gaps that a person means; with topic and partition a place of the agent's, gap or not.

    Raises FarandoleError for an agent that nothing is known of, a topic that it does not read, and where there is no gap.
    """
    known_by_name = {one.agent: one for one in standing.agents if one.declared or one.known}
    if agent != PROJECTOR and agent not in known_by_name:
        names = ", ".join([*known_by_name, PROJECTOR])
        raise FarandoleError(f"no agent {agent!r}, in the project or on the broker; known: {names}", ExitCode.NOT_FOUND)
    if topic is not None and agent != PROJECTOR:
        _check_read(known_by_name[agent], topic)
    of_agent = [gap for gap in listed(standing) if gap.agent == agent]
    found = [gap for gap in of_agent if topic in (None, gap.topic) and partition in (None, gap.partition)]
    if not found and topic is not None and partition is not None and agent != PROJECTOR:
        found = [Gap(agent, topic, partition, "")]
    if not found:
        raise FarandoleError(
            f"{agent} has no such gap; `farandole gaps list` shows those there are", ExitCode.NOT_FOUND
        )
    return found


def _check_read(agent: AgentStanding, topic: str) -> None:
    read = [*filter(None, [agent.topic]), f"{agent.agent}.wake"]
    if agent.topic and topic not in {*read, *(gap.topic for gap in agent.gaps)}:
        raise FarandoleError(f"{agent.agent} does not read {topic}; it reads {' and '.join(read)}", ExitCode.USAGE)


def accept(settings: Settings, connection: Connection[Any], gaps: list[Gap], at: str) -> dict[Gap, int]:
    """Have the readers go on at `at`: "earliest", "latest", or an offset of the present log. Returns the offsets.

    An agent's worker takes it up when it is next assigned the partition: as a rule, when it is started again. A projector
    that runs does so within 15 s. Raises FarandoleError for an offset that the log does not have.
    """
    chosen: dict[Gap, int] = {}
    ends = lag.ends(settings, {(settings.topic(gap.topic), gap.partition) for gap in gaps})
    for gap in gaps:
        span = ends.get((settings.topic(gap.topic), gap.partition))
        if span is None:
            raise FarandoleError(f"the broker has no {gap.topic} [{gap.partition}]", ExitCode.NOT_FOUND)
        offset = {"earliest": span.low, "latest": span.high}.get(at)
        offset = int(at) if offset is None else offset
        if not span.low <= offset <= span.high:
            raise FarandoleError(
                f"{gap.topic} [{gap.partition}] has offsets {span.low} to {span.high}; {offset} is not among them",
                ExitCode.USAGE,
            )
        chosen[gap] = offset
    for gap, offset in chosen.items():
        row = {"agent": gap.agent, "topic": gap.topic, "partition": gap.partition, "offset": offset}
        for name in ("accept_projector",) if gap.agent == PROJECTOR else ("accept", "accept_stopped"):
            connection.execute(_SQL[f"gaps_{name}"], row)
    return chosen
