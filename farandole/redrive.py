"""Dead letters answered: given back to their agents, or given up. One command at a time, each letter once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from farandole import dead, dead_letter, kafka, postgres, topics
from farandole.contracts import publishing
from farandole.contracts.codec import Contract
from farandole.dead import Chosen, Letter, Unfolded
from farandole.dead_letter import DeadLetter
from farandole.envelope import Emitter, follow, key_of, traceparent
from farandole.errors import ExitCode, FarandoleError, Unreachable
from farandole.event import Event, JobDiscarded, JobRedriven
from farandole.kafka import Headers, KafkaError, KafkaException, Record
from farandole.postgres import Connection
from farandole.settings import Settings
from farandole.steps import forgetting
from farandole.threads import Caller
from farandole.wake import Wake

#: Letters of one transaction, and bytes about: who reads the wakes waits for no more than these.
BATCH, BATCH_BYTES = 200, 8 * 1024 * 1024

#: Seconds for one call that ends or begins something on the broker.
_CALL = 30.0

#: No agent may be called so.
_EMITTER = Emitter("farandole")

_AGAIN = "run the command again: what was answered is not answered twice"


@dataclass(frozen=True, slots=True)
class Sent:
    """One record to produce; `topic` is the broker's name."""

    topic: str
    key: str | bytes | None
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        return dead_letter.size(self.key, self.value, self.headers)


@contextmanager
def answering(settings: Settings, waiting: Callable[[], None] = lambda: None) -> Iterator[Answers]:
    """The right to answer dead letters, which one command has at a time; `waiting` is called when another one has it.

    The lock keeps two people apart. Where it is lost (its connection breaks, its process stands still), the transactional
    id does: whoever comes next ends what this command left open, and makes the broker refuse it from then on.
    """
    with (
        postgres.connect(settings, application="farandole dead") as connection,
        postgres.advisory_lock(connection, "dead", settings.schema_name, waiting=waiting),
    ):
        if settings.create_topics:
            topics.ensure(settings, topics.of_events(settings, []))
        contracts = publishing.publish(settings, dead.ANSWERS.values())
        producer = kafka.producer(settings, settings.group("redrive"))
        try:
            _within(lambda: producer.init_transactions(_CALL))
        except KafkaException as failure:
            raise kafka.unreachable(settings, failure) from failure
        # Only now: nothing can be added any more to what earlier commands have answered.
        yield Answers(settings, connection, producer, contracts, dead.unfolded(settings, connection))


class Answers:
    """Answers letters, in transactions of some hundreds; may be interrupted anywhere, and begun again."""

    def __init__(
        self,
        settings: Settings,
        connection: Connection[Any],
        producer: kafka.Producer,
        contracts: Mapping[type[Event], Contract],
        known: Unfolded,
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._producer = producer
        self._contracts = contracts
        self._known = known
        self.left: list[tuple[Letter, str]] = []  #: letters that could not be given back, and why

    def open(self, chosen: Chosen) -> list[Letter]:
        """The letters that nobody has answered, whether the projector has heard of it or not."""
        return dead.letters(self._connection, chosen, self._known.answered)

    def redrive(
        self, letters: Sequence[Letter], reason: str | None = None, forget: Sequence[str] = ()
    ) -> Iterator[int]:
        """Give each letter back to its agent, and to no other reader of its topic, under the next run. Yields how many
        each transaction gave back.

        Steps named in `forget` are dropped first, and run anew.
        """
        self._check_wakes(letters)
        forgetting.check(self._connection, [letter.event_id for letter in letters], forget)
        missing = {letter.event_id: letter for letter in letters}
        batch: list[tuple[Letter, Sent]] = []
        size = 0
        for letter, found, told in dead.raw(self._settings, letters):
            del missing[letter.event_id]
            wake = self._wake(letter, found, told)
            if isinstance(wake, str):
                self.left.append((letter, wake))
                continue
            batch.append((letter, wake))
            size += wake.size
            if len(batch) >= BATCH or size > BATCH_BYTES:
                yield self._give_back(batch, reason, forget)
                batch, size = [], 0
        if batch:
            yield self._give_back(batch, reason, forget)
        self.left += [(letter, f"its record is gone from {letter.dead_letter_topic}") for letter in missing.values()]

    def _give_back(self, batch: Sequence[tuple[Letter, Sent]], reason: str | None, forget: Sequence[str]) -> int:
        """One batch. What is to be forgotten is so before anybody can handle it: see `farandole.steps.forgetting`."""
        ids = [letter.event_id for letter, _ in batch]
        busy = forgetting.forget(self._connection, ids, forget) if forget else {}
        self.left += [(letter, busy[letter.event_id]) for letter, _ in batch if letter.event_id in busy]
        given = [(letter, wake) for letter, wake in batch if letter.event_id not in busy]
        events = [self._event(letter, letter.run + 1, JobRedriven, reason) for letter, _ in given]
        sent = [sent for (_, wake), event in zip(given, events, strict=True) for sent in (wake, event)]
        return self._commit(sent) // 2 if sent else 0

    def discard(self, letters: Sequence[Letter], reason: str | None = None) -> Iterator[int]:
        """Give each letter up: its job ends as failed. Yields how many each transaction gave up."""
        for begin in range(0, len(letters), BATCH):
            batch = letters[begin : begin + BATCH]
            yield self._commit([self._event(letter, letter.run, JobDiscarded, reason) for letter in batch])

    def _check_wakes(self, letters: Sequence[Letter]) -> None:
        missing = topics.missing(self._settings, {_wakes(letter) for letter in letters})
        if missing:
            raise FarandoleError(
                f"topic {missing[0]} is missing; `farandole topics` creates it, and so does a start of the agent",
                ExitCode.NOT_FOUND,
            )

    def _wake(self, letter: Letter, found: Record, told: DeadLetter) -> Sent | str:
        """The record as it was, for the agent alone; or why there is none."""
        record = dead.whole(self._settings, found, told)
        if record is None:
            place = told.origin
            return (
                f"the letter holds a part, and the whole is gone from {place.topic} [{place.partition}] {place.offset}"
            )
        headers = Wake(told.origin, seq=0, run=letter.run + 1).headers()
        sent = Sent(self._settings.topic(_wakes(letter)), record.key, record.value, [*record.headers, *headers])
        most = kafka.MAX_DEAD_LETTER_BYTES - 1024
        return sent if sent.size <= most else f"it has {sent.size:,} bytes; {most:,} can be given back"

    def _event(self, letter: Letter, run: int, event: type[JobRedriven | JobDiscarded], reason: str | None) -> Sent:
        """Word of the answer. Its id is derived from the letter's: the same answer again is the same fact."""
        contract = self._contracts[event]
        lineage = follow([letter.fields | {"run": run}], _EMITTER, contract.writer.identity, 0)
        payload: Event = event(agent=letter.agent, dead_event_id=str(letter.event_id), reason=reason)
        headers: Headers = [("traceparent", traceparent(lineage)), *contract.headers]
        return Sent(self._settings.topic(contract.topic), key_of(lineage), contract.encode(lineage, payload), headers)

    def _commit(self, batch: Sequence[Sent]) -> int:
        """One transaction. Nothing is tried again here: it would be for the next command to find out what became of it."""
        try:
            self._producer.begin_transaction()
            for sent in batch:
                self._produce(sent)
            _within(lambda: self._producer.commit_transaction(_CALL))
        except KafkaException as failure:
            error = kafka.error_of(failure)
            if error.fatal():
                raise FarandoleError(f"another command has taken over ({error.str()}); {_AGAIN}") from failure
            raise Unreachable(f"the broker does not take the answers: {error.str()}; {_AGAIN}") from failure
        return len(batch)

    def _produce(self, sent: Sent) -> None:
        while True:
            try:
                return self._producer.produce(sent.topic, key=sent.key, value=sent.value, headers=sent.headers)  # type: ignore[arg-type]
            except BufferError:  # the client's queue is full: let it send
                self._producer.poll(0.05)


def _wakes(letter: Letter) -> str:
    return f"{letter.agent}.wake"


def _within(call: Callable[[], object]) -> None:
    """A call that may forget its own timeout while the broker is away (librdkafka 5456, 5511)."""
    caller = Caller("redrive")
    try:
        caller.within(_CALL + 1, call)
    except TimeoutError as hung:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, str(hung))) from hung
    finally:
        caller.close()
