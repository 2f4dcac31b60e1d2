"""What can be done to a running system, by the names that schedules use."""

from __future__ import annotations

import random
import time

import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

from farandole.settings import Settings
from farandole.stack.service import Service
from farandole.stack.stack import Stack
from tests.chaos.fleet import Fleet
from tests.chaos.schedule import Action
from tests.chaos.sending import Sending
from tests.kafka_log import KafkaLog

_SESSIONS = """
SELECT pg_terminate_backend(pid) FROM (
  SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'farandole%%' AND pid <> pg_backend_pid()
  ORDER BY md5(pid::text || %s) LIMIT %s
) AS chosen
"""


class Faults:
    """Makes faults; a service that is away meanwhile lets one that needs it pass."""

    def __init__(self, stack: Stack, settings: Settings, log: KafkaLog, fleet: Fleet, sending: Sending) -> None:
        self._stack = stack
        self._settings = settings
        self._log = log
        self._fleet = fleet
        self._sending = sending

    def do(self, action: Action, chance: random.Random) -> None:
        """Make one that takes no time. Raises LookupError for a name that is none."""
        target, value = action.target, action.value
        if target.endswith("-busy"):
            target = self._fleet.busy(target.removesuffix("-busy"))
        match action.what:
            case "kill":
                self._fleet.kill(target, value)
            case "freeze":
                self._fleet.freeze(target)
            case "thaw":
                self._fleet.thaw(target)
            case "thaw-all":
                self._fleet.thaw_all()
            case "join":
                self._fleet.start(target)
            case "drain":
                self._fleet.drain(target, value)
            case "terminate":
                self._terminate(int(value), chance)
            case "partitions":
                self._add_partitions(target, int(value))
            case "duplicate":
                self._sending.duplicate(int(value), target == "elsewhere", chance)
            case "poison":
                self._sending.poisons(target, int(value), chance)
            case other:
                raise LookupError(f"no fault is called {other!r}")

    def interrupt(self, action: Action) -> None:
        """Take a service away for `value` seconds; returns when it is back."""
        service: Service = getattr(self._stack, action.target)
        if action.what == "kill-service":
            service.kill()
        else:
            service.stop()
        time.sleep(action.value)
        service.start()

    def _terminate(self, most: int, chance: random.Random) -> None:
        """Cut some of our processes' connections to the database, whatever they are at."""
        try:
            with psycopg.connect(self._settings.database, autocommit=True, connect_timeout=2) as database:
                database.execute(_SESSIONS, (str(chance.random()), most))
        except psycopg.OperationalError:
            return  # it is away itself

    def _add_partitions(self, topic: str, more: int) -> None:
        name = self._log.topic(topic)
        try:
            now = len(self._log.admin.list_topics(name, timeout=2).topics[name].partitions)
            made = self._log.admin.create_partitions([NewPartitions(name, now + more)])
            made[name].result(5)
        except (KafkaException, TimeoutError):
            return  # the broker is away
