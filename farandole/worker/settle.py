"""The one place that settles: outputs, dead letters and offsets in one Kafka transaction, and what to do when it fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from farandole import asking, kafka
from farandole.errors import Stopped
from farandole.kafka import KafkaError, KafkaException, TopicPartition
from farandole.outage import Outage
from farandole.settings import Settings
from farandole.threads import Caller
from farandole.worker.holdings import Holdings, Item
from farandole.worker.intake import Intake
from farandole.worker.ledger import Ledger, SlotLost
from farandole.worker.membership import read_note
from farandole.worker.missing import missing_topic
from farandole.worker.outputs import Output
from farandole.worker.plans import Place, Plan

log = logging.getLogger("farandole.settle")

#: A transaction the broker says no to (not: is away for) is tried this often; one oversized record costs two tries.
MAX_TRIES = 5

#: Seconds. One call to the broker; one that takes longer is given up, and its producer with it.
_CALL = 5.0


class Settlement:
    """Blocking; runs on the worker's settling thread. One producer, one transaction at a time."""

    def __init__(
        self,
        settings: Settings,
        intake: Intake,
        holdings: Holdings,
        topics: Sequence[str],
        ledger: Ledger,
        group: str,
    ) -> None:
        self._settings = settings
        self._group = group
        self._membership = intake.membership
        self._holdings = holdings
        self._topics = topics
        self._ledger = ledger
        self._transactional_id = f"{group}.{ledger.slot}"
        self._producer: kafka.Producer | None = None
        self._kept: list[Item] = []  #: in a plan that was not committed yet
        self._doubtful: Plan | None = None  #: a plan of which nobody knows yet whether it was committed
        self._written: list[Output] = []  #: of the last try
        self._caller = Caller(f"commit-{self._transactional_id}")

    def open(self, outage: Outage) -> kafka.Producer:
        """Take over the transactional id: ends what a killed predecessor left open, and fences one that still lives."""
        self._producer = outage.through(self._take_over, _is_passing)
        return self._producer

    def _take_over(self) -> kafka.Producer:
        # A new one for each try: a producer that was made while the broker was away may never find it again.
        self._bounded(lambda: asking.check_leaders(self._settings, self._topics))
        producer = kafka.producer(self._settings, self._transactional_id)
        self._bounded(lambda: producer.init_transactions(_CALL))
        return producer

    def settle(self, outage: Outage) -> list[Item]:
        """Make what is finished durable, all of one plan or nothing. Returns the items committed, [] when there was nothing
        to commit, or it is not held any more. Raises Stopped when the broker keeps saying no, or is away for too long."""
        if self._doubtful and (made := self._decide(outage)):
            return made
        refused = 0
        while refused < MAX_TRIES:
            plan = self._holdings.plan(self._kept)
            if plan is None:
                return []
            # Kept until they are committed, whatever is raised here: the positions of the next plan lie past them.
            self._kept = plan.items
            try:
                self._transaction(plan, outage)
            except KafkaException as failure:
                self._doubtful = plan
                made_after_all = self._recover(failure, plan, outage)
                self._doubtful = None
                if not made_after_all:
                    if missing := missing_topic(self._settings, self._written):
                        time.sleep(outage.endure(missing))
                    elif _is_passing(failure):
                        time.sleep(outage.endure(failure))
                    else:
                        refused += 1
                    continue
            return self._made(plan)
        raise Stopped(
            f"{self._transactional_id}: the broker refused this commit {refused} times; see the log for its words"
        )

    def _decide(self, outage: Outage) -> list[Item]:
        """What became of a plan whose commit was given up before its outcome was known; its items if it was made."""
        plan = self._doubtful
        made = plan is not None and self._start_over(plan, outage)
        self._doubtful = None
        return self._made(plan) if plan and made else []

    def _made(self, plan: Plan) -> list[Item]:
        self._holdings.commit(plan)
        self._kept = []
        return plan.items

    def _transaction(self, plan: Plan, outage: Outage) -> None:
        """Write first, commit last. A crash before the last line leaves nothing behind that a reader sees."""
        self._written = outputs = [output for item in plan.items for output in item.outputs]
        producer = self._producer or self.open(outage)
        producer.begin_transaction()
        for output in outputs:
            _produce(producer, output)
        offsets = [TopicPartition(*_key(place), place.position, place.text) for place in plan.places]
        # Two calls: one that was given up may still end by itself, and nothing must follow then.
        self._bounded(lambda: producer.send_offsets_to_transaction(offsets, plan.metadata, _CALL))
        self._bounded(lambda: producer.commit_transaction(_CALL))

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

    def _recover(self, failure: KafkaException, plan: Plan, outage: Outage) -> bool:
        """After a commit that failed: True when it turns out to have been made, False when it must be tried again."""
        error = kafka.error_of(failure)
        log.warning("commit_failed %s: %s %s", self._transactional_id, error.name(), error.str())
        if error.code() == KafkaError.FENCED_INSTANCE_ID:
            raise SlotLost(f"another consumer has the group instance {self._transactional_id}")
        producer = self._producer
        if producer is None or error.fatal() or not error.txn_requires_abort():
            return self._start_over(plan, outage)  # whatever it is: a new producer, and the positions tell
        try:
            self._bounded(lambda: producer.abort_transaction(_CALL))
        except KafkaException as worse:
            # The broker gave it up by itself (fatal, "fenced"), or the producer has lost its coordinator for good
            # (librdkafka, after a restart of the broker): a new producer ends the transaction all the same.
            log.warning("abort_failed %s: %s", self._transactional_id, kafka.error_of(worse).str())
            return self._start_over(plan, outage)
        self._membership.refresh()
        return False

    def _start_over(self, plan: Plan, outage: Outage) -> bool:
        """A new producer: taking the id over settles the old transaction one way or the other; what lies beside the group's
        positions then tells which. Of partitions that are held nobody else can have committed since."""
        self._producer = None
        self._ledger.confirm()  # or two workers would take the id from each other for ever
        self.open(outage)
        keys = [_key(place) for place in plan.places]
        found = outage.through(lambda: asking.committed(self._settings, self._group, keys), _is_passing)
        self._membership.refresh()
        notes = [read_note(place) for place in found.values()]
        made = any(note and note.token == plan.token for note in notes)
        log.info("outcome %s: the transaction was %s", self._transactional_id, "committed" if made else "aborted")
        return made


def _key(place: Place) -> tuple[str, int]:
    return place.held.topic, place.held.partition


#: The group has moved on: its partitions may be ours still, under another generation.
_GROUP_MOVED = {
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
}


def _is_passing(failure: Exception) -> bool:
    """A rebalance or an outage, which end by themselves; not the broker's no to these very records."""
    if not isinstance(failure, KafkaException):
        return False
    error = kafka.error_of(failure)
    return error.code() in _GROUP_MOVED or error.retriable() or kafka.is_outage(failure)


def _produce(producer: kafka.Producer, output: Output) -> None:
    while True:
        try:
            return producer.produce(output.topic, value=output.value, key=output.key, headers=output.headers)  # type: ignore[arg-type]
        except BufferError:  # the client's queue is full: let it send
            producer.poll(0.05)
