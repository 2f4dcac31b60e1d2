"""Finds the schema a record names: by its fingerprint in the schema topic, by its id in the Schema Registry."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from farandole.contracts import framing
from farandole.contracts.codec import Writer, writer
from farandole.contracts.registry import Registry
from farandole.contracts.schema_log import SchemaLog
from farandole.contracts.units import disagreement
from farandole.errors import ConfigurationError, Poison
from farandole.settings import Settings

#: Seconds. A schema that was not found is not looked up again before: a stream of such records asks once in this time.
#: What names it meanwhile is poison, although the schema may have come since: long enough to spare the broker, short
#: enough that who publishes a schema late finds few dead letters to redrive.
ABSENT_FOR = 5.0

#: Ids are signed in a registry. Asked for a larger one, Confluent's answers as to a wrong path, which is waited out.
_LARGEST = 2**31 - 1


class Schemas:
    """Every schema that was met, by the key that records name it with (`framing.schema_key`). Safe for threads.

    `clock` counts seconds.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = SchemaLog(settings)
        self._registry = Registry(settings) if settings.schema_registry_url else None
        self._clock = clock
        self._known: dict[bytes, Writer] = {}
        self._absent: dict[bytes, tuple[float, str]] = {}  #: until when, and why
        self._lock = threading.Lock()

    def add(self, known: Writer) -> Writer:
        """Make a schema known that came from elsewhere, such as this process's own event classes."""
        held = self._log.add(known)
        self._known[framing.single_object(known.fingerprint)] = held
        return held

    def latest(self, name: str) -> Writer | None:
        """The schema that events of this full name are written with now, as far as one was met."""
        return self._log.latest(name)

    def meaning(self, written: Writer) -> Writer:
        """The schema that says what events of this name mean (stage, ending): `written`, or the latest one that does."""
        return self._log.meaning(written)

    def unknown(self, keys: Iterable[bytes]) -> set[bytes]:
        """Those of `keys` that have to be looked up: neither learned, nor found to be absent a moment ago."""
        wanted = set(keys) - self._known.keys()
        if not wanted:
            return wanted
        now = self._clock()
        return {key for key in wanted if self._absent.get(key, (now, ""))[0] <= now}

    def read(self) -> None:
        """Read the schema topic on: at start, so that an outage of it later delays no known schema. Raises Unreachable."""
        with self._lock:
            self._log.read_on()

    def learn(self, keys: Iterable[bytes]) -> None:
        """Look up what is unknown of `keys`, before records are decoded.

        Raises Unreachable when the topic or the registry does not answer. A schema is published before the first record
        written with it, so after a lookup that began when the record was there, `writer` is conclusive.
        """
        if not self.unknown(keys):
            return
        with self._lock:  # what another thread has just looked up is not asked again
            unknown = self.unknown(keys)
            fingerprints = {found for key in unknown if (found := framing.fingerprint_in(key))}
            if self._log.unknown(fingerprints):
                self._log.read_on()
            absent: dict[bytes, str] = {}
            for key in unknown:
                try:
                    self._known[key] = self._find(key)
                except Poison as poison:
                    absent[key] = str(poison)
            self._note(absent)

    def _note(self, absent: dict[bytes, str]) -> None:
        """Keep why these are absent, from now on: looking up many ids in a registry may take longer than `ABSENT_FOR`."""
        now = self._clock()
        kept = {key: told for key, told in self._absent.items() if told[0] > now and key not in self._known}
        self._absent = kept | {key: (now + ABSENT_FOR, why) for key, why in absent.items()}

    def writer(self, key: bytes) -> Writer:
        """The schema of `key`, as far as it was learned. Raises Poison("unknown_schema") when it was not."""
        found = self._known.get(key)
        if found is None:
            told = self._absent.get(key)
            raise Poison("unknown_schema", told[1] if told else f"schema {key.hex()} was not looked up")
        return found

    def _find(self, key: bytes) -> Writer:
        fingerprint, number = framing.fingerprint_in(key), framing.id_in(key)
        if fingerprint and (held := self._log.get(fingerprint)):
            return held
        if number is None:
            raise Poison("unknown_schema", f"schema {key[2:].hex()} is not in topic {self._log.topic}")
        if self._registry is None:
            raise Poison(
                "unknown_schema",
                f"the value has Confluent's framing with schema id {number}, and SCHEMA_REGISTRY_URL is not set",
            )
        if number > _LARGEST:
            raise Poison("unknown_schema", f"schema id {number} is larger than any registry gives")
        return self._registered(self._registry, number, fingerprint)

    def _registered(self, registry: Registry, number: int, fingerprint: bytes | None) -> Writer:
        schema = registry.schema(number)  # refused credentials are no fault of the record: they stop the reader
        try:
            found = writer(schema)
        except ConfigurationError as error:
            raise Poison("unknown_schema", f"schema id {number} of the registry: {error}") from error
        if fingerprint and found.fingerprint != fingerprint:
            raise Poison(
                "unknown_schema",
                f"schema {fingerprint.hex()} is not in topic {self._log.topic}, and id {number} is another schema "
                f"({found.name}) in the registry: has the registry moved?",
            )
        if self._log.get(found.fingerprint) is None:
            self._log.read_on()  # what its events mean is told there: a stranger does not say it, and of schemas that
            # differ in that alone some registries keep the first
        held = self._log.add(found, latest=False)
        # what a fingerprint does not cover may differ: an id names one schema, and that is the one which counts
        return found if disagreement(found.meant, held.meant) else held
