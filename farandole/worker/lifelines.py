"""Partitions whose workers die: how often, over which record, and what has to be handled alone to find it. Blocking."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farandole import postgres
from farandole.outcome import DeadLettered

#: Deaths in a row without progress, before records are handled alone. Chance takes a worker once or twice.
DEATHS = 3

#: Deaths over one and the same record, when nothing else was in hand, before it is dead-lettered.
KILLS = 3

#: A topic without the namespace, and a partition.
Place = tuple[str, int]

_SQL = Path(__file__).parent / "sql"
_LOCK, _WRITE, _MARK, _CLEAR, _RELEASE = (
    (_SQL / f"{name}.sql").read_text(encoding="utf-8")
    for name in (
        "lock_lifelines",
        "write_lifelines",
        "mark_alone",
        "clear_alone",
        "release_lifelines",
    )
)


@dataclass(frozen=True, slots=True)
class Lifeline:
    """What is known of a partition's workers. Offsets are those of its records."""

    owner: str | None  #: a worker's life; None when the last one let go in good order
    position: int  #: committed when the owner took it
    deaths: int = 0  #: of owners in a row at this position
    until: int | None = None  #: records before this offset are handled alone
    suspect: int | None = None  #: the record last handled alone, until it is committed
    alone: bool = False  #: it is in hand, and nothing else is in that process
    kills: int = 0  #: owners that died meanwhile

    def taken(self, owner: str, position: int, window: int) -> Lifeline:
        """What it is under a new `owner`, at `position`; `window` offsets may have been in hand when the last one died.

        Only what proves something counts. A death counts when the dead owner, which had a record in hand, committed nothing;
        a kill, when it died while that very record was all that its process handled. Progress forgets the deaths, and
        what is committed is no longer suspect.
        """
        if position < self.position:  # set back by hand, or another log: what was known is of other records
            return Lifeline(owner, position)
        died = self.owner is not None and self.owner != owner
        deaths = 0 if position > self.position else self.deaths + died
        until = self.until if self.until is not None and self.until > position else None
        if deaths >= DEATHS:
            until = max(until or 0, position + window)
        fresh = Lifeline(owner, position, deaths=deaths, until=until)
        if self.suspect is None or self.suspect < position:
            return fresh
        return replace(fresh, suspect=self.suspect, kills=self.kills + (died and self.alone))


class Lifelines:
    """The lifelines of one worker's partitions.

    Args:
        agent: whose partitions.
        owner: names this worker's life; another life of the same worker has another one.
        lookahead: offsets that may be in hand beyond a partition's position.
        living: the lives of workers in this process, this one included from now on: none of them has died.
    """

    def __init__(self, agent: str, owner: str, lookahead: int, living: set[str] | None = None) -> None:
        self._agent = agent
        self._owner = owner
        self._window = 2 * lookahead
        self._living = set() if living is None else living
        self._living.add(owner)

    def take(self, connection: postgres.Connection[Any], positions: Mapping[Place, int]) -> dict[Place, Lifeline]:
        """Take over partitions, given their committed positions (any fixed number where none is committed).

        Call it when the first record of an assignment is about to be handled, and not before: an owner is taken to have
        had something in hand when it dies, and an idle one must not count. Where `until` is given, records before it are
        to be handled alone. Taking twice is taking once.
        """
        places = sorted(positions)
        with _durably(connection):
            taken = {place: Lifeline(self._owner, position) for place, position in positions.items()}
            for topic, partition, owner, *known in connection.execute(_LOCK, self._named(places)):
                line = Lifeline(self._owner if owner in self._living else owner, *known)
                place = topic, partition
                taken[place] = line.taken(self._owner, positions[place], self._window)
            lines = [taken[place] for place in places]
            connection.execute(
                _WRITE,
                {
                    **self._named(places),
                    "positions": [line.position for line in lines],
                    "deaths": [line.deaths for line in lines],
                    "untils": [line.until for line in lines],
                    "suspects": [line.suspect for line in lines],
                    "kills": [line.kills for line in lines],
                },
            )
        return taken

    def alone(self, connection: postgres.Connection[Any], topic: str, partition: int, offset: int) -> int | None:
        """Mark, durably, that this record is all that the process handles from now on. Call it inside `Isolation.alone`.

        Returns how many workers died over it so far (`killed` says what follows), or None when another worker has the
        partition: the record is not ours to handle.
        """
        with _durably(connection):
            row = connection.execute(_MARK, self._of(topic, partition, offset)).fetchone()
        return int(row[0]) if row else None

    def done(self, connection: postgres.Connection[Any], topic: str, partition: int, offset: int) -> None:
        """The record that was handled alone is committed."""
        with _durably(connection):
            connection.execute(_CLEAR, self._of(topic, partition, offset))

    def let_go(self, connection: postgres.Connection[Any], places: Collection[Place]) -> None:
        """Partitions are given back, or the worker leaves, with whatever it abandons: no death, no kill."""
        with _durably(connection):
            connection.execute(_RELEASE, self._named(sorted(places)))

    def _named(self, places: Collection[Place]) -> dict[str, Any]:
        topics, partitions = [place[0] for place in places], [place[1] for place in places]
        return {"agent": self._agent, "owner": self._owner, "topics": topics, "partitions": partitions}

    def _of(self, topic: str, partition: int, offset: int) -> dict[str, Any]:
        return {"agent": self._agent, "owner": self._owner, "topic": topic, "partition": partition, "offset": offset}


def killed(kills: int) -> DeadLettered | None:
    """How a record ends over which `kills` workers died, or None while it is to be handled."""
    if kills < KILLS:
        return None
    return DeadLettered("killed", f"the process ended {kills} times while this record was handled alone", kills)


@contextmanager
def _durably(connection: postgres.Connection[Any]) -> Iterator[None]:
    """A transaction that is on disk when it has ended, in a session that does not wait for that otherwise."""
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")
        yield
