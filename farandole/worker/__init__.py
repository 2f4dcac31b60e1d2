"""Running agents: one worker an agent, all in one process, until a signal or a failure ends them together."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from farandole import kafka, topics
from farandole.agent import Agent, Wiring
from farandole.contracts import publishing
from farandole.errors import ConfigurationError, ExitCode, FarandoleError
from farandole.job_now import Jobs
from farandole.lookout import Lookout
from farandole.migrate import migrate
from farandole.settings import Settings
from farandole.worker.isolation import Isolation
from farandole.worker.ledger import SlotLost
from farandole.worker.running import run_worker
from farandole.worker.worker import Worker

log = logging.getLogger("farandole.worker")


async def run_agents(settings: Settings, agents: Sequence[Agent]) -> None:
    """Run `agents` until SIGTERM or SIGINT, then drain; a second signal leaves at once.

    Raises the first failure of any of them (Stopped, Unreachable, ConfigurationError); the others drain first.
    """
    wirings = [agent.wiring(settings.flow) for agent in agents]
    names = [agent.name for agent in agents]
    if len(set(names)) != len(names):
        raise ConfigurationError(f"two agents have the same name, among {', '.join(names)}; a name is a consumer group")
    stop = asyncio.Event()
    _on_signals(stop)
    wirings = await asyncio.to_thread(prepare, settings, wirings)
    failures: list[BaseException] = []
    isolation = Isolation()
    lookout = Lookout(settings, "farandole agents")  # one connection for all; none, where nobody calls ctx.job()

    async def run(wiring: Wiring) -> None:
        try:
            while not await _run_once(settings, wiring, stop, isolation, lookout):
                log.warning("agent %s begins anew under another slot", wiring.agent.name)
        except (Exception, asyncio.CancelledError) as failure:
            failures.append(failure)
            log.error(
                "stopped agent=%s: %s", wiring.agent.name, failure, exc_info=not isinstance(failure, FarandoleError)
            )
            stop.set()

    await asyncio.gather(*(run(wiring) for wiring in wirings))
    await lookout.close()
    if failures:
        raise _first(failures)


async def _run_once(settings: Settings, wiring: Wiring, stop: asyncio.Event, isolation: Isolation, jobs: Jobs) -> bool:
    """A worker until its end; False when it must begin anew because its slot is another's."""
    try:
        await run_worker(Worker(settings, wiring, stop, isolation), jobs)
    except SlotLost as reason:
        log.warning("slot_lost agent=%s: %s", wiring.agent.name, reason)
        return stop.is_set()
    return True


def prepare(settings: Settings, wirings: Sequence[Wiring]) -> list[Wiring]:
    """Print the wiring; check broker, database, topics and schemas, so that what is wrong is said before the first poll.
    Returns the wirings with the limits of the topics they write to."""
    for wiring in wirings:
        log.info("%s", describe(settings, wiring))
    kafka.check_broker(settings)
    migrate(settings)
    wanted = topics.of_agents(settings, [wiring.agent for wiring in wirings])
    rows = topics.ensure(settings, wanted) if settings.create_topics else topics.compare(settings, wanted)
    missing = [row.topic for row in rows if row.status == "missing"]
    if missing:
        raise topics.absent(missing)
    for row in rows:
        if row.status == "drift":
            log.warning("topic_drift %s: %s is %s, declared %s", row.topic, row.setting, row.found, row.declared)
    contracts = publishing.publish(settings, {contract.event for one in wirings for contract in one.contracts})
    written = {name for wiring in wirings for name in wiring.writes}
    limits = topics.limits(settings, sorted(written))
    return [replace(wiring.written_with(contracts), limits=limits) for wiring in wirings]


def describe(settings: Settings, wiring: Wiring) -> str:
    """One line: agent, group, what it reads and emits, and where its handler is."""
    reads = ", ".join(dict.fromkeys(contract.writer.name for contract in wiring.reads.values()))
    emits = (
        ", ".join(contract.writer.name for event, contract in wiring.emits.items() if event in wiring.handler.emits)
        or "nothing"
    )
    handler = wiring.handler
    kind = (
        "async" if handler.is_async else "inline" if wiring.agent.inline else "cpu" if wiring.agent.cpu else "threads"
    )
    limits = f"concurrency={wiring.agent.concurrency} timeout={wiring.agent.timeout:g}s"
    if wiring.agent.cpu:
        limits += f" processes={wiring.agent.cpu}"
    if wiring.agent.inline:  # one after the other, and nothing can cut a plain call short
        limits = "concurrency=1"
    code = handler.function.__code__
    return (
        f"wiring agent={wiring.agent.name} group={settings.group(wiring.agent.name)} topic={settings.topic(wiring.topic)} "
        f"reads={reads} emits={emits} handler={Path(code.co_filename).name}:{code.co_firstlineno} kind={kind} "
        f"{limits} attempts={wiring.agent.retries.attempts}"
    )


def _on_signals(stop: asyncio.Event) -> None:
    signals = 0

    def asked() -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            log.warning("second signal: leaving at once; what was not committed is read again")
            os._exit(ExitCode.INTERRUPTED)
        log.info("draining: no new records; a second signal leaves at once")
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked)


def _first(failures: list[BaseException]) -> BaseException:
    """The failure itself, out of the group that a task group wraps around it."""
    failure = failures[0]
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
