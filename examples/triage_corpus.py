"""Run the corpus (`make corpus`) through the four agents in this process, without Kafka, and say what became of it.

    python examples/triage_corpus.py [FILE.jsonl] [--show CATEGORY]

A look at the rules: what they make of real mail, and what a mail costs. The customers are those of the seed file.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:1] = [str(ROOT)]

from agents.shop.customers import SeedCustomers  # noqa: E402  after the path
from farandole import Agent, Emitted, Event, Failed, load_agent  # noqa: E402  after the path
from farandole.outcome import Outcome  # noqa: E402  after the path
from farandole.sources import rows  # noqa: E402  after the path
from farandole.testing import deliver  # noqa: E402  after the path
from schemas.jobs import Acted, Classified, Submitted  # noqa: E402  after the path

CORPUS = ROOT / ".farandole" / "corpus" / "mails.jsonl"
NAMES = ("classify", "enrich", "act", "confirm")


@dataclass
class Tally:
    """What became of the mails."""

    ends: Counter[str] = field(default_factory=Counter)  #: "done", "failed: …", "dead: …"
    categories: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  #: by source
    languages: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))  #: by agent
    slowest: dict[str, float] = field(default_factory=lambda: defaultdict(float))  #: by agent, of one mail
    shown: list[str] = field(default_factory=list)  #: mails of the category asked for

    @property
    def mails(self) -> int:
        return sum(self.ends.values())


async def triage(path: Path, show: str = "", every: int = 1) -> Tally:
    """Every (or every third, …) mail of a JSON Lines file through the agents, one after the other."""
    tally, customers = Tally(), SeedCustomers()
    agents = [load_agent(ROOT / "agents" / f"{name}.py") for name in NAMES]
    for row in islice(rows(path), 0, None, every):
        event: Event = (mail := Submitted(**row.fields))
        seen: list[Event] = []
        for agent in agents:
            outcome = await _timed(agent, event, customers, tally)
            if not isinstance(outcome, Emitted):
                break
            (event,) = outcome.events
            seen.append(event)
        _count(tally, mail, seen, outcome, show)
    return tally


async def _timed(agent: Agent, event: Event, customers: SeedCustomers, tally: Tally) -> Outcome:
    started = time.process_time()
    outcome = await deliver(agent, event, resource=customers if agent.name == "enrich" else None)
    taken = time.process_time() - started
    tally.seconds[agent.name] += taken
    tally.slowest[agent.name] = max(tally.slowest[agent.name], taken)
    return outcome


def _count(tally: Tally, mail: Submitted, seen: list[Event], last: Outcome, show: str) -> None:
    match last:
        case Emitted():
            tally.ends["done"] += 1
        case Failed(reason):
            tally.ends[f"failed: {reason}"] += 1
        case other:
            tally.ends[f"dead: {other}"] += 1
    for event in seen:
        if isinstance(event, Classified):
            tally.categories[mail.source][event.category.value] += 1
            tally.languages[event.language] += 1
            if show == event.category.value:
                tally.shown.append(f"{mail.source} | {mail.sender[:40]} | {mail.subject[:70]} | {event.why}")
        if isinstance(event, Acted):
            tally.decisions[event.decision.value] += 1


def say(tally: Tally) -> None:
    """The tally, for people."""
    write = sys.stdout.write
    write(f"{tally.mails} mails: {dict(tally.ends.most_common())}\n")
    for source, categories in sorted(tally.categories.items()):
        write(f"  {source}: {dict(categories.most_common())}\n")
    write(f"decisions: {dict(tally.decisions.most_common())}\nlanguages: {dict(tally.languages.most_common())}\n")
    for name in NAMES:
        mean = tally.seconds[name] / tally.mails * 1e6
        write(f"  {name}: {mean:.0f} µs of CPU a mail, slowest {tally.slowest[name] * 1e3:.0f} ms (deliver included)\n")
    write("".join(f"{line}\n" for line in tally.shown))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    wanted = arguments.pop(arguments.index("--show") + 1) if "--show" in arguments else ""
    files = [Path(argument) for argument in arguments if argument != "--show"]
    say(asyncio.run(triage(files[0] if files else CORPUS, wanted)))
