"""Confluent's Schema Registry client, its answers sorted. The only module that imports confluent_kafka.schema_registry."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from confluent_kafka.schema_registry import Schema as Text
from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
from httpx2 import RequestError

from farandole.errors import ConfigurationError, Unreachable

T = TypeVar("T")

#: Seconds to connect, and again for each part of an answer. With one more try that is kafka.ANSWER at most.
_TIMEOUT = 5.0
#: The second try is for a connection that the registry had closed meanwhile. Outages are waited out by who asks.
_RETRIES = 1
#: Milliseconds between the two tries, at most.
_PAUSE_MS = 200
#: Statuses of a registry that is not well, or of what stands in front of one: to be tried again later.
_UNWELL = frozenset((408, 425, 429))
#: Characters of a registry's reason. Some repeat the schemas that disagree, whole.
_REASON = 1500


class NotARegistry(ConfigurationError):
    """Something answers at the address, but not as a Schema Registry does."""


class Incompatible(ConfigurationError):
    """The registry refuses a schema for what an earlier version of its subject says."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema as a registry holds it."""

    text: str
    kind: str  #: "AVRO", "JSON" or "PROTOBUF"
    references: tuple[tuple[str, int], ...]  #: subjects and versions of the schemas it refers to


class RegistryClient:
    """One registry. Safe for threads; no call takes longer than some ten seconds.

    All raise Unreachable when the registry does not answer or is not well, and ConfigurationError when it refuses the
    credentials, or when what answers is no registry.
    """

    def __init__(self, urls: str) -> None:
        """`urls`: one, or several of one registry, with commas between them; the first may hold user:password@."""
        parts = [_split(url.strip()) for url in urls.split(",")]
        bare = [urlunsplit((part.scheme, part.netloc.rpartition("@")[2], part.path, "", "")) for part in parts]
        self.url = bare[0].rstrip("/")
        conf: dict[str, Any] = {
            "url": ",".join(bare),
            "timeout": _TIMEOUT,
            "max.retries": _RETRIES,
            "retries.wait.ms": _PAUSE_MS,
            "retries.max.wait.ms": _PAUSE_MS,
        }
        if parts[0].username:
            conf["basic.auth.user.info"] = f"{unquote(parts[0].username)}:{unquote(parts[0].password or '')}"
        if authorities := _authorities():
            conf["ssl.ca.location"] = authorities
        self._client = SchemaRegistryClient(conf)

    def by_id(self, id: int) -> Registered | None:
        """The schema of `id`; None when the registry says that there is none."""
        return self._registered(f"schema id {id}", lambda: self._client.get_schema(id))

    def by_version(self, subject: str, version: int) -> Registered | None:
        """The schema of a subject's version; None when the registry says that there is none."""
        what = f"version {version} of subject {subject}"
        return self._registered(what, lambda: self._client.get_version(subject, version).schema)

    def lookup(self, subject: str, text: str) -> int | None:
        """The id of this very schema under `subject`; None when it is not registered there."""
        found = self._ask(f"subject {subject}", lambda: self._client.lookup_schema(subject, Text(text)))
        return self._id(found.schema_id) if found else None

    def register(self, subject: str, text: str) -> int:
        """The id of the schema, registered under `subject` if it was not. Raises ConfigurationError with the registry's
        reasons when it refuses the schema."""
        try:
            return self._id(self._ask(f"subject {subject}", lambda: self._client.register_schema(subject, Text(text))))
        except _Refused as refused:
            incompatible = refused.status == 409
            why = "it is incompatible with an earlier version" if incompatible else "it is not valid there"
            raise (Incompatible if incompatible else ConfigurationError)(
                f"the registry at {self.url} refuses the schema for subject {subject}: {why}: {refused.reason}"
            ) from refused

    def compatibility(self, subject: str) -> str | None:
        """The level that holds for `subject`; None when it has none of its own, or does not exist yet."""
        return self._ask(f"compatibility of subject {subject}", lambda: self._client.get_compatibility(subject))

    def set_compatibility(self, subject: str, level: str) -> None:
        """Set the level of `subject`, which need not exist yet."""
        try:
            self._ask(f"compatibility of subject {subject}", lambda: self._client.set_compatibility(subject, level))
        except _Refused as refused:  # of several who set it first at once, Apicurio refuses all but one
            if self.compatibility(subject) != level:
                raise ConfigurationError(
                    f"the registry at {self.url} refuses compatibility {level} for subject {subject}: {refused.reason}"
                ) from refused

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def _ask(self, what: str, call: Callable[[], T]) -> T | None:
        """The registry's answer about `what`; None when it says that there is no such thing."""
        try:
            return call()
        except SchemaRegistryError as error:
            if error.http_status_code == 404 and str(error.error_code).startswith("404") and error.error_code != 404:
                return None
            raise self._failure(what, error) from error
        except RequestError as error:
            reason = str(error) or "no answer in time"
            raise Unreachable(f"the schema registry at {self.url} does not answer: {reason}") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:  # an answer that is no JSON, or other JSON
            raise self._no_registry(what, "with something else") from error

    def _failure(self, what: str, error: SchemaRegistryError) -> Exception:
        status = error.http_status_code
        reason = _reason(error.error_message)
        if status in (401, 403):
            return ConfigurationError(
                f"SCHEMA_REGISTRY_URL: the registry at {self.url} refuses access to {what} (HTTP {status}); "
                "expected the user and password of somebody who may, as in https://user:password@host:port"
            )
        if status >= 500 or status in _UNWELL:
            return Unreachable(f"the schema registry at {self.url} is not well: HTTP {status} {reason}")
        if status in (409, 422):
            return _Refused(status, reason)
        return self._no_registry(what, f"with HTTP {status}")

    def _no_registry(self, what: str, how: str) -> NotARegistry:
        return NotARegistry(
            f"SCHEMA_REGISTRY_URL: what answers at {self.url} is no Schema Registry (asked for {what}, it answered {how}); "
            "expected the base of its interface, such as http://host:8081, or http://host:8080/apis/ccompat/v7 of Apicurio"
        )

    def _registered(self, what: str, call: Callable[[], Text]) -> Registered | None:
        found = self._ask(what, call)
        if found is None:
            return None
        if not isinstance(found.schema_str, str):
            raise self._no_registry(what, "without a schema")
        references = tuple((str(each.subject), int(each.version or 0)) for each in found.references or ())
        return Registered(found.schema_str, found.schema_type or "AVRO", references)

    def _id(self, found: int | None) -> int:
        if not isinstance(found, int):
            raise self._no_registry("a schema's id", "without one")
        return found


class _Refused(Exception):
    """The registry understood, and says no."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its words repeat the URL, which may hold a password
        usable = False
    if not usable:
        raise ConfigurationError("SCHEMA_REGISTRY_URL: expected http://host:port or https://user:password@host:port")
    return parts


def _reason(message: str | None) -> str:
    """The registry's words, without the Java class they come from and without the old schema's text."""
    words = re.sub(r"^(?:[\w.$]+(?:Exception|Error):\s*)+", "", message or "no reason given")
    return " ".join(words.partition("{oldSchema:")[0].split()).rstrip(" ,")[:_REASON]


def _authorities() -> str | None:
    """Where this machine keeps the certificates it trusts; the client by itself takes those of a package."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        return paths.cafile
    return paths.capath if paths.capath and any(Path(paths.capath).iterdir()) else None
