"""A project with its topics and tables and nothing at work, for tests that write what there is to see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from psycopg.types.json import Jsonb

from farandole import kafka, migrate, postgres, topics
from farandole.flow import agent_files, load_agents
from farandole.settings import Settings
from tests.kafka_log import KafkaLog
from tests.unit.projects import project

AGENTS = {"price": ("Placed", "Priced"), "bill": ("Priced", "Billed")}


class Shop:
    """A project of flow `orders` with two agents."""

    def __init__(self, settings: Settings, root: Path) -> None:
        self.settings = settings
        self.log = KafkaLog(settings.brokers, settings.namespace)
        agents = load_agents(agent_files(project(root, agents=AGENTS))).values()
        topics.ensure(settings, topics.of_agents(settings, agents))
        migrate.migrate(settings)

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        member = kafka.consumer(self.settings, self.settings.group(group))
        try:
            place = TopicPartition(self.settings.topic(topic), partition, offset)
            member.commit(offsets=[place], asynchronous=False)
        finally:
            member.close()

    def run(self, statement: str, *given: Any) -> None:
        with postgres.connect(self.settings) as connection:
            connection.execute(statement, given or None)

    def worker(self, agent: str, slot: int, age: float, **vitals: Any) -> None:
        self.run(
            "INSERT INTO worker (agent, slot, host, pid, started_at, beat_at, vitals)"
            " VALUES (%s, %s, 'here', 7, now(), now() - make_interval(secs => %s), %s)",
            *(agent, slot, age, Jsonb({"state": "running", **vitals})),
        )

    def event(self, kind: str, event_id: str, body: dict[str, str], outcome: str | None = None) -> None:
        self.run(
            "INSERT INTO event_log (event_id, trace_id, type, outcome, emitted_by, run, hop, attempt, occurred_at, topic,"
            ' partition, "offset", logged_at, value, body, sanitised, content_hash) VALUES'
            " (%s, '01890a5d-ac96-8b65-8a84-d00ed8b6d81e', %s, %s, 'x', 0, 0, 1, now(), 't', 0, 0, now(), '', %s, false, 0)",
            *(event_id, f"orders.{kind}", outcome, Jsonb(body)),
        )
