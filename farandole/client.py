"""What a program uses: submit jobs, and ask how they stand."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Self
from uuid import UUID

from farandole import ids
from farandole.contracts.codec import Contract
from farandole.envelope import Emitter, begin, key_of
from farandole.event import Event
from farandole.reader import Reader, WaitTimeout
from farandole.sender import Chunk, Sender, announce, check_size
from farandole.settings import Settings, load_settings

#: Records sent before the next look at acknowledgements; one callback into the event loop a chunk, not a record.
CHUNK = 500
#: Chunks on their way at once. More would only fill memory: the broker acknowledges a chunk in milliseconds.
CHUNKS_IN_FLIGHT = 8

__all__ = ["Client", "Submission", "WaitTimeout"]

_SUBMITTER = Emitter("client")


@dataclass(frozen=True, slots=True)
class Submission:
    """One job to submit: its first event, and the business key and time that name it."""

    payload: Event
    key: str | None = None
    at: datetime | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A submission as it goes to the broker."""

    trace_id: str
    topic: str
    key: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class Client(Reader):
    """Submits jobs and reads their state; an async context manager, safe to share between tasks of one event loop.

    Args:
        settings: default `load_settings()`: the environment, [tool.farandole], the running local stack.

    >>> async def main() -> None:
    ...     async with Client() as client:
    ...         trace_id = await client.submit(Submitted(text="hello"), key="mail-17")
    ...         job = await client.wait(trace_id, timeout=60)
    ...         print(job.status, job.stage)
    """

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__(settings or load_settings())
        self._sender: Sender | None = None
        self._known: dict[type[Event], Contract] = {}
        self._announcing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Send what is still on its way (bounded), then let go of the broker and the database."""
        if self._sender:
            await asyncio.to_thread(self._sender.close)
            self._sender = None
        await super().close()

    async def submit(
        self, payload: Event, key: str | None = None, at: datetime | None = None, tenant: str | None = None
    ) -> UUID:
        """Start a job; returns its trace_id once the broker has the event on disk.

        Args:
            payload: the first event, usually of the type declared with `ingest=True`.
            key: names the job in the user's words (an order number): submitting it twice is one job.
            at: a time that belongs to the key (when the mail came), with its zone; give the same each time, or never.
            tenant: whose job it is; part of what the key means.

        Raises Unreachable when the broker does not answer, ConfigurationError when the payload does not fit its schema.

        >>> async def example(client: Client) -> None:
        ...     first = await client.submit(Submitted(text="hello"), key="mail-17")
        ...     assert first == await client.submit(Submitted(text="hello"), key="mail-17")
        """
        (trace_id,) = [one async for one in self.submit_many([Submission(payload, key, at, tenant)])]
        return trace_id

    async def submit_many(self, submissions: Iterable[Submission]) -> AsyncIterator[UUID]:
        """Start many jobs, as fast as the broker takes them; yields each trace_id, in order, once it is acknowledged.

        `submissions` is drawn on only as fast as records leave, so it may be a generator over a large file. When one
        fails, those yielded so far are on the broker; with keys, sending all of them again is safe.

        >>> async def example(client: Client, rows: list[str]) -> int:
        ...     sent = [id async for id in client.submit_many(Submission(Submitted(text=row), key=row) for row in rows)]
        ...     return len(sent)
        """
        rows = iter(submissions)
        flying: deque[Chunk] = deque()
        broken: Exception | None = None
        while True:
            taken: list[_Prepared] = []
            try:
                while not broken and len(taken) < CHUNK and (row := next(rows, None)):
                    if type(row.payload) not in self._known:
                        await self._announce(type(row.payload))
                    taken.append(self._prepare(row))
            except Exception as error:  # noqa: BLE001  raised again below, once what came before it is on the broker
                broken = error
            if taken:
                flying.append(await self._send(taken))
                await asyncio.sleep(0)  # encoding a chunk takes milliseconds: other tasks get their turn between two
            while flying and (len(flying) >= CHUNKS_IN_FLIGHT or not taken or broken):
                for trace_id in await flying.popleft().acknowledged():
                    yield trace_id
            if broken:
                raise broken
            if not taken:
                return

    def _prepare(self, submission: Submission) -> _Prepared:
        made = self._known[type(submission.payload)]
        raw = begin(self._trace_id(submission), _SUBMITTER, made.writer.identity, submission.tenant)
        value = made.encode(raw, submission.payload)
        check_size(value)
        return _Prepared(raw["trace_id"], self.settings.topic(made.topic), key_of(raw), value, made.headers)

    async def _send(self, taken: list[_Prepared]) -> Chunk:
        if self._sender is None:
            self._sender = Sender(self.settings)
        chunk = Chunk([record.trace_id for record in taken])
        for record in taken:
            await self._sender.send(record.topic, record.key, record.value, record.headers, chunk)
        return chunk

    def _trace_id(self, submission: Submission) -> str:
        if submission.key is None:
            return ids.new_trace_id()
        return ids.trace_id_of_key(self.settings.flow, submission.key, submission.at, submission.tenant)

    async def _announce(self, event: type[Event]) -> None:
        """The topic and the schema come before the first event."""
        async with self._announcing:
            if event not in self._known:
                self._known[event] = await asyncio.to_thread(announce, self.settings, event)
