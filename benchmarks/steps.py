"""What a step costs: many handlings that each run one, beside the bare statements of a claim and a result.

    python benchmarks/steps.py [steps=20000] [at_once=200]

Prints JSON lines: steps a second, microseconds and processor time of a step, statements for one, and the ratio to the bare
ones, which go one after another on one connection as a handler without farandole would send them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from farandole import migrate, postgres
from farandole.attempt import AttemptTime
from farandole.models.values import Usage
from farandole.outage import Outage
from farandole.settings import Settings, load_settings
from farandole.steps.claims import Allowance, Call, Claim, Finish, Money, Step
from farandole.steps.effects import Effects
from farandole.steps.ledger import Ledger

ALLOWANCES = (Allowance("agent/bench", 10**12, daily=True), Allowance("day", 10**12, daily=True))


def bare(settings: Settings, steps: int) -> dict[str, float]:
    """An INSERT before the effect and an UPDATE after it, each committed."""
    rows = [str(uuid4()) for _ in range(steps)]
    with postgres.connect(settings, application="bench") as connection:
        began, cpu = time.perf_counter(), time.process_time()
        for event in rows:
            connection.execute(
                "INSERT INTO step (event_id, agent, name, state, owner) VALUES (%s, 'bare', 'x', 'leased', 'me')",
                (event,),
            )
            connection.execute(
                "UPDATE step SET state = 'done', result = '\"sent\"' WHERE event_id = %s AND agent = 'bare' AND name = 'x' "
                "AND run = 0 AND owner = 'me'",
                (event,),
            )
        return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu, "statements": 2 * steps}


async def spread(count: int, at_once: int, work: Callable[[], Awaitable[None]]) -> None:
    left = iter(range(count))

    async def one() -> None:
        for _ in left:
            await work()

    await asyncio.gather(*(one() for _ in range(at_once)))


async def ours(settings: Settings, steps: int, at_once: int, *, paid: bool) -> dict[str, float]:
    """The same through the ledger; `paid`: with a model call's reservation in two budgets, and its usage row."""
    async with Ledger(settings, "bench", lambda: Outage("benchmark", 60)) as ledger:
        statements = counted(ledger)

        async def send(key: str) -> str:
            return "sent"

        async def once() -> None:
            event = str(uuid4())
            fields = {"event_id": event, "trace_id": event, "tenant": None, "run": 0}
            await Effects(ledger, "bench", fields, AttemptTime(60)).once("mail", send, None, "repeat")

        async def pay() -> None:
            event, call = str(uuid4()), str(uuid4())
            claim = Claim(
                Step(event, "bench", "ask", event), ledger.owner(), 0, money=Money(call, "m", 300, ALLOWANCES)
            )
            await ledger.begin(claim)
            cost = Call(call, "m", Usage(100, 20), 120, 900, "end_turn", "answered", "req")
            await ledger.finish(Finish(claim.step, claim.owner, "done", '"sent"', call=cost))

        began, cpu = time.perf_counter(), time.process_time()
        await spread(steps, at_once, pay if paid else once)
        return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu, "statements": statements[0]}


def counted(ledger: Ledger) -> list[int]:
    """The number of statements that the ledger sends from now on."""
    found, run = [0], ledger._session.run

    def counting(work: Callable[[Any], Any]) -> Any:
        found[0] += 1
        return run(work)

    ledger._session.run = counting  # type: ignore[method-assign]
    return found


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    at_once = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    settings = load_settings(namespace=f"bench{int(time.time()) % 100_000}")
    migrate.migrate(settings)
    baseline = bare(settings, steps // 4)
    for what, found, count in (
        ("bare, one after another", baseline, steps // 4),
        (f"ours, {at_once} at once", asyncio.run(ours(settings, steps, at_once, paid=False)), steps),
        ("ours, one at a time", asyncio.run(ours(settings, steps // 10, 1, paid=False)), steps // 10),
        (f"ours, {at_once} at once, with money", asyncio.run(ours(settings, steps, at_once, paid=True)), steps),
    ):
        each = found["seconds"] / count
        print(
            json.dumps(
                {
                    "what": what,
                    "steps_a_second": round(1 / each),
                    "us": round(each * 1e6, 1),
                    "cpu_us": round(found["cpu"] / count * 1e6, 1),
                    "statements": round(found["statements"] / count, 3),
                    "x_bare": round(baseline["seconds"] / (steps // 4) / each, 2),
                }
            )
        )


if __name__ == "__main__":
    main()
