"""The one place that settles: outputs, dead letters and offsets in one Kafka transaction, and what to do when it fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from farandole import kafka
from farandole.errors import Stopped
from farandole.kafka import KafkaError, KafkaException, TopicPartition
from farandole.outage import Outage
from farandole.settings import Settings
from farandole.threads import Caller
from farandole.worker.batch import Batch, Plan
from farandole.worker.membership import Membership
from farandole.worker.outputs import Output, Outputs

log = logging.getLogger("farandole.settle")

T = TypeVar("T")

#: A transaction the broker says no to (not: is away for) is tried this often; one oversized record costs two tries.
MAX_TRIES = 5

#: Seconds. One call to the broker; a commit that takes longer is asked for again, never given up.
_CALL = 10.0


class Settlement:
    """Blocking; runs on the worker's settling thread. One producer, one transaction at a time."""

    def __init__(
        self,
        settings: Settings,
        membership: Membership,
        outputs: Outputs,
        group: str,
        slot: int,
        outage: Callable[[], Outage],
    ) -> None:
        self._settings = settings
        self._group = group
        self._outage = outage
        self._membership = membership
        self._outputs = outputs
        self._transactional_id = f"{group}.{slot}"
        self._producer: kafka.Producer | None = None
        self._caller = Caller(f"commit-{self._transactional_id}")

    def open(self) -> kafka.Producer:
        """Take over the transactional id: ends what a killed predecessor left open, and fences one that still lives."""
        outage = self._outage()
        while True:
            # A new one for each try: a producer that was made while the broker was away may never find it again.
            producer = kafka.producer(self._settings, self._transactional_id)
            try:
                self._bounded(lambda producer=producer: producer.init_transactions(_CALL / 2))  # type: ignore[misc]
            except KafkaException as failure:
                if not _is_passing(failure):
                    raise
                time.sleep(outage.endure(failure))
            else:
                self._producer = producer
                return producer

    def settle(self, batch: Batch) -> Plan | None:
        """Make what is finished of `batch` durable, all of it or nothing. Returns what was committed, None if nothing is
        held any more. Raises Stopped when the broker keeps saying no, or is away for too long."""
        produced = {id(item): self._outputs.of(item) for item in batch.finished()[0]}
        refused, waiting = 0, self._outage()
        while refused < MAX_TRIES:
            plan = self._membership.plan(batch)
            if plan is None:
                return None
            outputs = [output for item in plan.items for output in produced[id(item)]]
            try:
                self._transaction(plan, outputs)
            except KafkaException as failure:
                if not self._recover(failure, plan):
                    if _is_passing(failure):
                        time.sleep(waiting.endure(failure))
                    else:
                        refused += 1
                    continue
            _note(plan)
            return plan
        raise Stopped(
            f"{self._transactional_id}: the broker refused this commit {refused} times; see the log for its words"
        )

    def _transaction(self, plan: Plan, outputs: list[Output]) -> None:
        """Write first, commit last. A crash before the last line leaves nothing behind that a reader sees."""
        producer = self._ready()
        producer.begin_transaction()
        for output in outputs:
            _produce(producer, output)
        ends = [TopicPartition(held.topic, held.partition, end) for held, end in plan.ends.items()]

        def end() -> None:
            producer.send_offsets_to_transaction(ends, plan.metadata, _CALL / 2)
            producer.commit_transaction(_CALL / 2)

        self._bounded(end)

    def _bounded(self, call: Callable[[], object]) -> None:
        """One call that may end a transaction. Where it does not answer the producer is given up, not asked again: taking
        its id over settles the transaction, and the group's positions tell how.

        Bounded from outside too: where the group's coordinator goes away meanwhile, the client library forgets the call
        and its timeout, and hangs for ever (librdkafka issues 5456 and 5511).
        """
        try:
            self._caller.within(_CALL + 1, call)
        except TimeoutError as hung:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, str(hung))) from hung

    def _recover(self, failure: KafkaException, plan: Plan) -> bool:
        """After a commit that failed: True when it turns out to have been made, False when it must be tried again."""
        error = kafka.error_of(failure)
        log.warning("commit_failed %s: %s %s", self._transactional_id, error.name(), error.str())
        producer = self._producer
        if producer is None or error.fatal() or not error.txn_requires_abort():
            return self._start_over(plan)  # whatever it is: a new producer, and the positions tell what became of it
        try:
            self._bounded(lambda: producer.abort_transaction(_CALL))
        except KafkaException as worse:
            # The broker gave it up by itself (fatal, "fenced"), or the producer has lost its coordinator for good
            # (librdkafka, after a restart of the broker): a new producer ends the transaction all the same.
            log.warning("abort_failed %s: %s", self._transactional_id, kafka.error_of(worse).str())
            return self._start_over(plan)
        self._membership.refresh()
        return False

    def _start_over(self, plan: Plan) -> bool:
        """A new producer: taking the id over settles the old transaction one way or the other, the group's positions then
        tell which."""
        self._producer = None
        self.open()
        places = [(held.topic, held.partition) for held in plan.ends]
        found = self._persist(lambda: kafka.committed(self._settings, self._group, places))
        self._membership.refresh()
        return all(found[(held.topic, held.partition)] >= end for held, end in plan.ends.items())

    def _ready(self) -> kafka.Producer:
        return self._producer or self.open()

    def _persist(self, call: Callable[[], T]) -> T:
        """Ask again while the broker is away: until the outcome is known nothing else is allowed."""
        outage = self._outage()
        while True:
            try:
                return call()
            except KafkaException as failure:
                error = kafka.error_of(failure)
                if error.fatal() or error.txn_requires_abort() or not (error.retriable() or kafka.is_outage(failure)):
                    raise
                time.sleep(outage.endure(failure))


#: The group has moved on: its partitions may be ours still, under another generation.
_GROUP_MOVED = {
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
}


def _is_passing(failure: KafkaException) -> bool:
    """A rebalance or an outage, which end by themselves; not the broker's no to these very records."""
    error = kafka.error_of(failure)
    return error.code() in _GROUP_MOVED or error.retriable() or kafka.is_outage(failure)


def _note(plan: Plan) -> None:
    for held, end in plan.ends.items():
        held.committed = end


def _produce(producer: kafka.Producer, output: Output) -> None:
    while True:
        try:
            return producer.produce(output.topic, value=output.value, key=output.key, headers=output.headers)  # type: ignore[arg-type]
        except BufferError:  # the client's queue is full: let it send
            producer.poll(0.05)
