"""Handlings that are put off: their rows in Postgres, made before the offset is committed and gone after the last output."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from farandole.agent import Agent
from farandole.outcome import Outcome, Skipped, Suspended
from farandole.postgres import Connection, texts
from farandole.settings import Settings
from farandole.worker.holdings import Item

_SQL = texts(__file__)

Key = tuple[str, int, str]  #: of a claim: event id, run, name
Numbered = tuple[str, int, int]  #: of a wait: event id, run, seq

#: What a skipped wake says of its wait: another record is handled for it, or its row has gone on already.
_NOT_MINE = (Skipped("duplicate"), Skipped("suspended"))


class Waits:
    """One agent's waits. Every method is one transaction of a connection in autocommit mode, and blocks."""

    def __init__(self, settings: Settings, agent: Agent) -> None:
        self._settings = settings
        self._agent = agent.name
        self.holds = agent.retries.order == "hold"  #: events of a key wait for each other

    def suspend(
        self, connection: Connection[Any], items: Sequence[Item], owner: str
    ) -> list[tuple[Item, Outcome | None]]:
        """Put off the items, whose outcome is `Suspended`; durable when it returns. Their offsets may be committed then.

        Only what is claimed by `owner`: a worker that lost a partition without knowing must not put off what the next owner
        has handled, or the wake would emit it again. Returns the other items with what is true of them: `Skipped` as a
        duplicate where the event is claimed for another record, None where this very record has another owner by now.
        """
        unique = {self._key(item): item for item in items}
        with connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = on")  # the session's claims do without
            claims = self._claims(unique)
            given = {"agent": self._agent, "owner": owner, "claims": self._settings.claims, **claims}
            mine = {_text(row) for row in connection.execute(_SQL["suspend_claims"], given)}
            self._write(connection, [item for key, item in unique.items() if key in mine])
        refused = {key: item for key, item in unique.items() if key not in mine}
        if not refused:
            return []
        given = {"agent": self._agent, **self._claims(refused)}
        elsewhere = {_text(row) for row in connection.execute(_SQL["claimed_elsewhere"], given)}
        return [(item, Skipped("duplicate") if key in elsewhere else None) for key, item in refused.items()]

    def behind(self, connection: Connection[Any], items: Sequence[Item]) -> list[Item]:
        """Of items about to be handled, those that must wait behind an earlier event of their key (order="hold")."""
        held = [item for item in items if self.lane(item) is not None]
        if not self.holds or not held:
            return []
        return [held[row[0]] for row in connection.execute(_SQL["lanes_behind"], self._places(held))]

    def settle(self, connection: Connection[Any], items: Iterable[Item]) -> None:
        """After the commit of `items`: the waits whose wakes are among them are over, and who stood behind them is due.

        Harmless to repeat. Where it is not done, by a crash, the sweeper finds the row by the committed offset.
        """
        read: list[Numbered] = []
        unread: list[tuple[str, int, int, int, int]] = []
        for item in ended(items):
            wake, fields = item.wake, item.fields
            if wake is None:
                continue
            if fields is None or "event_id" not in fields:
                unread.append((wake.origin.topic, wake.origin.partition, wake.origin.offset, wake.run, wake.seq))
            else:
                read.append((fields["event_id"], fields["run"], wake.seq))
        if read or unread:
            with connection.transaction():
                lanes = self._end(connection, read)
                if unread:
                    lanes += self._rows(connection, "settle_unread", *_columns(unread), self._agent)
                self._release(connection, lanes)

    def end(self, connection: Connection[Any], waits: Sequence[Numbered]) -> None:
        """These waits are over: their wakes were handled and committed."""
        with connection.transaction():
            self._release(connection, self._end(connection, waits))

    def lane(self, item: Item) -> bytes | None:
        """What stands for the key among events that wait for each other; None where they do not, or there is no key."""
        return sha256(item.record.key).digest() if self.holds and item.record.key else None

    def _end(self, connection: Connection[Any], waits: Sequence[Numbered]) -> list[tuple[Any, ...]]:
        return self._rows(connection, "settle", *_columns(waits), self._agent) if waits else []

    def _release(self, connection: Connection[Any], ended: list[tuple[Any, ...]]) -> None:
        """A statement of its own, after the rows are gone: it sees who came to stand behind them until then."""
        lanes = sorted({row[0] for row in ended if row[0] is not None})
        if lanes:
            connection.execute(_SQL["release"], {"lanes": lanes, "agent": self._agent})

    def _write(self, connection: Connection[Any], items: list[Item]) -> None:
        if items:
            still_behind = self._lock_earlier(connection, items)
            rows = [self._row(item, id(item) in still_behind) for item in items]
            connection.execute(_SQL["wait"], [self._agent, *_columns(rows)])

    def _lock_earlier(self, connection: Connection[Any], items: list[Item]) -> set[int]:
        """Those of `items` that stand behind another for certain until this transaction ends: not to be due by themselves.

        An earlier wait that ends meanwhile ends before or after us. Before: its row is gone, and nobody would wake who
        stands behind it; so that one is due at once. After: whoever ends it sees our rows.
        """
        held = [item for item in items if _suspended(item).kind == "behind" and self.lane(item) is not None]
        if not held:
            return set()
        found = {id(held[row[0]]) for row in connection.execute(_SQL["lanes_lock"], self._places(held))}
        behind, seen = {id(item) for item in held}, set[bytes | None]()
        for item in sorted(items, key=_place):  # one put off in this transaction is an earlier one as well
            if id(item) in behind and self.lane(item) in seen:
                found.add(id(item))
            seen.add(self.lane(item))
        return found

    def _places(self, held: Sequence[Item]) -> list[Any]:
        rows = [(n, self.lane(item), item.record.partition, item.record.offset) for n, item in enumerate(held)]
        return [*_columns(rows), self._agent]

    def _row(self, item: Item, stands_behind: bool) -> tuple[Any, ...]:
        suspended, record, fields = _suspended(item), item.record, item.fields or {}
        return (
            fields["event_id"],
            fields["run"],
            item.wake.seq + 1 if item.wake else 1,
            suspended.kind,
            fields["trace_id"],
            None if stands_behind else suspended.after,
            self._settings.bare(record.topic),
            record.partition,
            record.offset,
            record.timestamp_ms,
            record.key,
            record.value or b"",
            pack_headers(record.headers),
            self.lane(item),
            suspended.attempts,
            _storable(suspended.error),
        )

    def _key(self, item: Item) -> Key:
        fields = item.fields or {}
        return fields["event_id"], fields["run"], item.wake.step if item.wake else ""

    def _claims(self, items: dict[Key, Item]) -> dict[str, list[Any]]:
        bare, helds = self._settings.bare, [item.held for item in items.values()]
        event_ids, runs, names = _columns(list(items))
        return {
            "event_ids": event_ids,
            "runs": runs,
            "names": names,
            "topics": [bare(held.topic) for held in helds],
            "partitions": [held.partition for held in helds],
            "offsets": [item.offset for item in items.values()],
        }

    def _rows(self, connection: Connection[Any], query: str, *given: Any) -> list[tuple[Any, ...]]:
        return connection.execute(_SQL[query], given).fetchall()


def ended(items: Iterable[Item]) -> list[Item]:
    """Of committed items, those whose wait is over: what `settle` is for."""
    return [
        item
        for item in items
        if item.wake is not None
        and item.wake.seq > 0
        and not isinstance(item.outcome, Suspended)
        and item.outcome not in _NOT_MINE
    ]


def put_behind(item: Item) -> Suspended:
    """How an item ends that must wait behind an earlier event of its key: with the attempts it had, no more."""
    wake = item.wake
    return Suspended(0.0, wake.error if wake else "", wake.attempts if wake else 0, "behind")


def pack_headers(headers: Sequence[tuple[str, bytes | None]]) -> str:
    """Headers as JSON, in their order, whatever they hold."""
    return json.dumps([[name, None if value is None else base64.b64encode(value).decode()] for name, value in headers])


def unpack_headers(packed: Any) -> list[tuple[str, bytes | None]]:
    """What `pack_headers` packed, read from JSON."""
    return [(name, None if value is None else base64.b64decode(value)) for name, value in packed]


def _suspended(item: Item) -> Suspended:
    if not isinstance(item.outcome, Suspended):
        raise TypeError(f"an item is to be put off whose outcome is {item.outcome!r}")
    return item.outcome


def _place(item: Item) -> tuple[int, int]:
    return item.record.partition, item.record.offset


def _text(row: Any) -> Key:
    return str(row[0]), row[1], row[2]


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _storable(text: str) -> str:
    """Postgres has no NUL in texts, and UTF-8 no lone surrogates; an error may quote both."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")[:2000]
