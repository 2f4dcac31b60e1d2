"""Events drawn by chance from a project's own classes: odd clocks, redrives, fan-outs, ties; as rows of event_log."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from farandole import envelope
from farandole.contracts import codec
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS
from farandole.contracts.evolution.examples import Example, Maker, number, text
from farandole.contracts.evolution.resolution import Named
from farandole.contracts.lookup import Schemas
from farandole.contracts.wire import strict
from farandole.event import Event
from farandole.kafka import Record
from farandole.projector.rows import Rows
from farandole.settings import Settings

#: Microseconds: two minutes before midnight in UTC, so that days differ.
START = 1_782_863_880_000_000
#: Microseconds. Times are drawn from few, so that some are equal.
STEP, STEPS = 40_000_000, 7

_WORDS = ("north", "south", "café", "", "42", "A very long text that says nothing. " * 4)
#: Sums of these depend on their order.
_FLOATS = (0.1, 0.2, 0.3, 0.7, 1e16, -1e16, 3.0)
_NUMBERS = (0, 1, 2, 3, 1000, -5)


def rows(classes: Sequence[type[Event]], settings: Settings, jobs: int, seed: int) -> list[bytes]:
    """The events of about `jobs` jobs (at least two events of each class), packed as COPY takes them; the same for a seed."""
    chance = random.Random(seed)
    offline = settings.model_copy(update={"schema_registry_url": None})
    schemas = Schemas(offline)
    for event in classes:
        schemas.add(codec.contract(event, settings.flow).writer)
    records = list(_records(list(classes), settings, jobs, chance))
    return Rows(schemas, offline).batch(records).rows


def _records(classes: list[type[Event]], settings: Settings, jobs: int, chance: random.Random) -> Iterator[Record]:
    wanted = [event for event in classes for _ in range(2)]
    wanted += chance.choices(classes, k=max(0, 5 * jobs - len(wanted)))
    chance.shuffle(wanted)
    size = -(-len(wanted) // jobs)
    offset = 0
    for start in range(0, len(wanted), size):
        for event, fields in _journey(wanted[start : start + size], settings.flow, chance):
            contract = codec.contract(event, settings.flow)
            value = contract.header + strict.envelope(fields) + _payload(contract.writer.schema, chance)
            logged_ms = (fields["occurred_at"] + chance.randrange(5_000_000)) // 1000
            key = envelope.key_of(fields).encode()
            topic = settings.topic(contract.topic)
            yield Record(topic, chance.randrange(3), offset, logged_ms, key, value, [])
            offset += 1


def _journey(
    classes: Sequence[type[Event]], flow: str, chance: random.Random
) -> Iterator[tuple[type[Event], dict[str, Any]]]:
    """One job: an event each of `classes`, each caused by one before it; some in a fan-out, some of a later run."""
    trace = str(UUID(int=chance.getrandbits(128), version=4))
    emitters = [envelope.Emitter(name, "1") for name in ("split", "work")]
    tenant = chance.choice([None, "acme", "globex"])
    scope = str(UUID(int=chance.getrandbits(128), version=4))
    written: list[dict[str, Any]] = []
    for position, event in enumerate(classes):
        emitter, name = chance.choice(emitters), f"{flow}.{event.avro_name()}"
        if written:
            cause = chance.choice(written[-3:])
            fields = envelope.follow([cause], emitter, name, position, chance.choice([1, 1, 1, 3]))
        else:
            fields = envelope.begin(trace, emitter, name, tenant=tenant)
        fields["occurred_at"] = START + STEP * chance.randrange(STEPS)
        fields["run"] += bool(written) and chance.random() < 0.2
        fields["hop"] -= fields["hop"] > 0 and chance.random() < 0.2  # several of one hop
        if chance.random() < 0.3:
            fields |= {"scope_id": scope, "part": position, "parts": len(classes)}
        written.append(fields)
        yield event, fields


def _payload(schema: dict[str, Any], chance: random.Random) -> bytes:
    names = Named(schema)
    maker = _Drawn(names, chance)
    root = names.look(names.root)
    inside = (root["name"],)
    own = [field for field in root["fields"] if field["name"] not in ENVELOPE_FIELDS]
    return b"".join(maker.draw(field["type"], field["name"], inside) for field in own)


class _Drawn(Maker):
    """Draws values where the examples of a schema count through them: few words, so that groups have several members."""

    def __init__(self, names: Named, chance: random.Random) -> None:
        super().__init__(names, 0)
        self.chance = chance

    def draw(self, node: Any, path: str, inside: tuple[str, ...]) -> bytes:
        self.number = self.chance.randrange(12)  # which branch, which symbol, whether a list is empty
        return self.make(node, path, inside)[1]

    def plain(self, kind: str, logical: str, path: str) -> Example:
        if not logical and kind == "string":
            word = self.chance.choice(_WORDS)
            return word, text(word)
        if not logical and kind in ("int", "long"):
            value = self.chance.choice(_NUMBERS)
            return value, number(value)
        if kind in ("float", "double"):
            fraction = self.chance.choice(_FLOATS)
            return fraction, struct.pack("<f" if kind == "float" else "<d", fraction)
        return super().plain(kind, logical, path)
