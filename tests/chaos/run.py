"""One run: a flow of processes on a private Kafka and Postgres, its load, its faults in their time, its rest, the check."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psycopg

from farandole.settings import load_settings
from farandole.stack.stack import Stack
from tests.acceptance import picture
from tests.acceptance.checker import caught_up
from tests.acceptance.picture import Stage
from tests.acceptance.watch import Watch
from tests.chaos import checker, handlings
from tests.chaos.client import Submitting
from tests.chaos.faults import Faults
from tests.chaos.fleet import Fleet
from tests.chaos.schedule import READS, Action, Schedule
from tests.chaos.sending import Sending
from tests.kafka_log import KafkaLog


@dataclass(slots=True)
class Result:
    """How a run ended."""

    schedule: Schedule
    folder: Path
    complaints: list[str] = field(default_factory=list)
    events: int = 0
    kills: int = 0
    faults: int = 0
    copies: int = 0
    poison: int = 0
    rested: float = 0.0  #: seconds from the end of the faults

    @property
    def held(self) -> bool:
        return not self.complaints


def run(stack: Stack, schedule: Schedule, folder: Path) -> Result:
    """Run `schedule`; what its processes said lies in `folder` afterwards."""
    result = Result(schedule, folder)
    try:
        _Run(stack, schedule, folder, result).run()
    except Exception as failure:  # noqa: BLE001  a run that could not be made has not held
        result.complaints.append(f"the run itself failed: {failure!r}")
    return result


class _Run:
    def __init__(self, stack: Stack, schedule: Schedule, folder: Path, result: Result) -> None:
        self._stack = stack
        self._schedule = schedule
        self._result = result
        name = f"c{schedule.seed}x{time.time_ns() // 1_000_000 % 1_000_000_000}"
        self._settings = load_settings(**asdict(stack.endpoints), namespace=name)
        self._log = KafkaLog(self._settings.brokers, name)
        self._stages = tuple(Stage(agent, READS[agent], frozenset()) for agent in schedule.agents)
        self._fleet = Fleet(self._settings, schedule, folder)
        self._services = ThreadPoolExecutor(1, "services")
        self._busy: list[Future[None]] = []

    def run(self) -> None:
        for name in self._fleet.members:
            self._fleet.start(name)
        try:
            self._fleet.ready()
            if self._schedule.settle:
                self._fleet.settled()
            sending, submitting = (
                Sending(self._log, self._schedule.load),
                Submitting(self._settings, self._schedule.load),
            )
            with self._database() as database:
                watch = Watch(self._log, database, self._stages)
            with watch:
                sending.start()
                submitting.start()
                self._befall(Faults(self._stack, self._settings, self._log, self._fleet, sending))
                self._come_to_rest(sending, submitting)
            with self._database() as database:
                self._judge(sending, watch, database)
            self._result.complaints += sending.failures + submitting.failures
        finally:
            self._services.shutdown()
            self._fleet.end()
            self._result.kills = self._fleet.kills
            self._result.complaints += self._fleet.complaints

    @contextmanager
    def _database(self) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
        with picture.connect(self._settings.database, self._settings.schema_name) as connection:
            yield connection

    def _befall(self, faults: Faults) -> None:
        """Do each action when it is due; what stops services takes its time beside the others."""
        began = time.monotonic()
        for action in self._schedule.actions:
            self._wait_until(began + action.at)
            if action.what.endswith("-service"):
                self._busy.append(self._services.submit(faults.interrupt, action))
            else:
                faults.do(action, self._chance(action))
            self._result.faults += 1
        self._wait_until(began + self._schedule.load.seconds)

    def _chance(self, action: Action) -> random.Random:
        """Each action's own, so that what one of them draws changes no other."""
        return random.Random(f"{self._schedule.seed} {action}")

    def _wait_until(self, due: float) -> None:
        while (left := due - time.monotonic()) > 0:
            self._fleet.tick()
            time.sleep(min(0.05, left))

    def _come_to_rest(self, sending: Sending, submitting: Submitting) -> None:
        """The faults are over: everything must be at its end by itself."""
        for service in self._busy:
            service.result(180)
        self._fleet.make_whole()
        began = time.monotonic()
        self._log = KafkaLog(
            self._settings.brokers, self._settings.namespace
        )  # an old client may not survive a restart
        left = ["the load"]
        with self._database() as database:
            while left and time.monotonic() < began + self._schedule.rest:
                self._wait_until(time.monotonic() + 0.2)
                left = list(self._unrest(database)) if sending.join(0) and submitting.join(0) else ["the load"]
        self._result.rested = time.monotonic() - began
        self._result.complaints += [
            f"not at rest {self._schedule.rest:.0f} s after the last fault: {what}" for what in left
        ]

    def _unrest(self, database: psycopg.Connection[tuple[object, ...]]) -> Iterator[str]:
        yield from caught_up(picture.standing(self._log, database, self._stages))
        for agent in self._schedule.agents:
            if self._log.exists(f"{agent}.wake") and (lag := self._log.lag(agent, f"{agent}.wake")):
                yield f"{agent} lags by {lag} in its wakes"
        yield from (f"{agent} waits for {event}" for agent, event in _waits(database))

    def _judge(self, sending: Sending, watch: Watch, database: psycopg.Connection[tuple[object, ...]]) -> None:
        found = picture.take(self._log, database, self._stages)
        columns = "stage, day, events, attempts, first_at, last_at"
        times = {(row[0], row[1]): row[2:] for row in database.execute(f"SELECT {columns} FROM stage_times")}
        crashed = any((action.what, action.target) == ("kill-service", "postgres") for action in self._schedule.actions)
        evidence = checker.Evidence(
            picture=found,
            agents=self._schedule.agents,
            acknowledged={place: event.event_id for place, event in sending.acknowledged.items()},
            poison=frozenset(sending.poison),
            handlings=handlings.read(self._result.folder / "ledger"),
            waits=_waits(database),
            stage_times=times,
            holds=self._schedule.settings.get("CHAOS_ORDER") == "hold",
            claims_may_be_lost=crashed,
        )
        self._result.complaints += checker.complaints(evidence) + watch.complaints(database)
        if self._result.complaints:  # the topics go with the stack
            listed = (
                f"{record.place} {record.key!r} {record.type if record.fields else record.value!r} {record.fields}"
                for record in found.records
            )
            (self._result.folder / "records.txt").write_text("\n".join(listed), encoding="utf-8")
        if len(sending.acknowledged) != len(sending.events):
            self._result.complaints.append(f"{len(sending.acknowledged)} of {len(sending.events)} records were sent")
        self._result.events = len(found.records)
        self._result.copies, self._result.poison = sending.copies, len(sending.poison)


def _waits(database: psycopg.Connection[tuple[object, ...]]) -> list[tuple[str, str]]:
    """What is put aside at this moment: (agent, event id)."""
    return [(str(agent), str(event)) for agent, event in database.execute("SELECT agent, event_id FROM wait")]
