"""What befalls a run, all of it drawn from one seed: settings, load, and faults with their times."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

#: Agents of the flow, in the order of the flow, and what each reads.
READS = {"quick": "jobs.sent", "slow": "jobs.sorted", "plain": "jobs.worked"}
AGENTS = tuple(READS)
PROJECTOR = "projector"
#: Members of each group that are always to run.
EACH = 2
#: Milliseconds; the shortest that the broker takes.
SESSION_TIMEOUT_MS = 6000
#: Seconds from the last fault until nothing lags and nothing waits: a session, a transaction, hung handlers, one restart.
REST = 90.0


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that is done to the system, `at` seconds after the load began. `slow-busy` stands for the worker at work."""

    at: float
    what: str
    target: str = ""
    value: float = 0

    def __str__(self) -> str:
        return f"{self.at:7.3f} s  {self.what} {self.target}" + (f" {self.value:g}" if self.value else "")


@dataclass(frozen=True, slots=True)
class Load:
    """What producers send: events of many jobs, interleaved, over `seconds`."""

    seed: int
    events: int = 1500
    jobs: int = 150
    seconds: float = 20
    odd: float = 0.04  #: share of events that a handler is told to be slow, to hang, to fail, … with
    work: str = ""  #: what those are told, where it is not drawn
    client_jobs: int = 40  #: submitted by the project's own client, besides
    skew: float = 3600  #: seconds by which the clocks of two producers are off, one each way


@dataclass(frozen=True, slots=True)
class Schedule:
    """A whole run."""

    seed: int
    load: Load
    actions: tuple[Action, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    agents: tuple[str, ...] = AGENTS
    each: int = EACH  #: members of every agent's group
    projectors: int = EACH
    broken: tuple[str, str] | None = None  #: a variant of tests.chaos.broken, and the group that runs it
    settle: bool = False  #: begin when every worker holds partitions, so that what befalls it befalls something
    rest: float = REST  #: seconds within which everything must come to rest

    @property
    def members(self) -> list[str]:
        """Names of those that are to run: `slow-0`, `projector-1`, …"""
        workers = [f"{agent}-{number}" for agent in self.agents for number in range(self.each)]
        return [f"{PROJECTOR}-{number}" for number in range(self.projectors)] + workers

    def told(self) -> str:
        """For people, to run it again."""
        settings = " ".join(f"{name}={value}" for name, value in sorted(self.settings.items()))
        return "\n".join(
            [f"seed {self.seed}: {self.load}", f"  {settings}", *(f"  {action}" for action in self.actions)]
        )


Fault = Callable[[random.Random, float], Iterator[Action]]


def _member(chance: random.Random) -> str:
    return f"{chance.choice((*AGENTS, *AGENTS, PROJECTOR))}-{chance.randrange(EACH)}"


def _kill(chance: random.Random, at: float) -> Iterator[Action]:
    """kill -9; whoever watches over it starts it again, at once or later."""
    for member in {_member(chance) for _ in range(chance.choice((1, 1, 2, 3)))}:
        yield Action(at, "kill", member, chance.choice((0, 0, 0.5, 2, 7)))


def _freeze(chance: random.Random, at: float) -> Iterator[Action]:
    """SIGSTOP for a moment, past the session's end, or past the transaction's too; then SIGCONT."""
    member = _member(chance)
    yield Action(at, "freeze", member)
    yield Action(at + chance.choice((1, 7.5, 7.5, 11)), "thaw", member)


def _storm(chance: random.Random, at: float) -> Iterator[Action]:
    """Members join and leave in quick turn; most of them in good order."""
    agent = chance.choice(AGENTS)
    for number in range(chance.choice((2, 3))):
        extra = f"{agent}-{10 + number + int(at * 10)}"
        yield Action(at + 0.3 * number, "join", extra)
        yield Action(at + chance.uniform(2, 5), chance.choice(("drain", "drain", "drain", "kill")), extra, -1)
    yield Action(at + chance.uniform(0, 3), "drain", f"{agent}-{chance.randrange(EACH)}", 0.5)


def _broker(chance: random.Random, at: float) -> Iterator[Action]:
    yield Action(at, chance.choice(("stop", "kill")) + "-service", "kafka", chance.choice((0, 1, 4)))


def _postgres(chance: random.Random, at: float) -> Iterator[Action]:
    yield Action(at, chance.choice(("stop", "kill")) + "-service", "postgres", chance.choice((0, 1, 4)))


def _terminate(chance: random.Random, at: float) -> Iterator[Action]:
    """Connections to the database are cut, in a burst, so that some are cut in mid-commit."""
    for number in range(chance.randint(3, 8)):
        yield Action(at + 0.07 * number, "terminate", value=chance.choice((1, 2, 5)))


def _duplicates(chance: random.Random, at: float) -> Iterator[Action]:
    yield Action(at, "duplicate", chance.choice(("elsewhere", "beside")), chance.randint(20, 150))


def _partitions(chance: random.Random, at: float) -> Iterator[Action]:
    yield Action(at, "partitions", chance.choice(list(READS.values())), chance.randint(1, 2))


def _poison(chance: random.Random, at: float) -> Iterator[Action]:
    yield Action(at, "poison", chance.choice(list(READS.values())), chance.randint(1, 8))


#: By name, with how often each is drawn.
FAULTS: dict[str, tuple[Fault, int]] = {
    "kill": (_kill, 8),
    "freeze": (_freeze, 3),
    "storm": (_storm, 2),
    "broker": (_broker, 2),
    "postgres": (_postgres, 2),
    "terminate": (_terminate, 2),
    "duplicates": (_duplicates, 3),
    "partitions": (_partitions, 1),
    "poison": (_poison, 3),
}


def draw(seed: int, without: Collection[str] = (), seconds: float = 20) -> Schedule:
    """The schedule of a seed; the same one each time."""
    chance = random.Random(seed)
    kinds = [name for name, (_, weight) in FAULTS.items() for _ in range(weight)]
    actions: list[Action] = []
    at = 1.0
    while at < seconds:
        name = chance.choice(kinds)  # drawn before it is left out, so that `without` changes nothing else
        found = list(FAULTS[name][0](chance, round(at, 3)))
        actions += [] if name in without else found
        at += chance.uniform(0.3, 2.2)
    settings = {
        "FARANDOLE_BATCH": chance.choice(("20", "100", "500")),
        "FARANDOLE_PARTITIONS": chance.choice(("1", "2", "3", "6")),
        "FARANDOLE_SESSION_TIMEOUT_MS": str(SESSION_TIMEOUT_MS),
        "CHAOS_CONCURRENCY": chance.choice(("5", "50", "300")),
        "CHAOS_THREADS": chance.choice(("2", "8", "20")),
        "CHAOS_ORDER": chance.choice(("overtake", "hold")),
    }
    load = Load(
        seed,
        events=chance.choice((800, 1500, 2500)),
        jobs=chance.choice((20, 150, 800)),
        seconds=seconds,
        odd=0 if "odd" in without else 0.04,
        skew=0 if "clock" in without else 3600,
    )
    return Schedule(seed, load, tuple(sorted(actions, key=lambda action: action.at)), settings)
