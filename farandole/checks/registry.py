"""The Schema Registry that a flow may stand on: whether one is at the address that is set."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from farandole.examination import Examination, Finding, need

#: Seconds. A registry answers in milliseconds; one that is asked for the first time, in half a second.
PATIENCE = 5.0

_CLIENT = "pip install 'farandole[registry]'"
_MEANT = (
    "SCHEMA_REGISTRY_URL: expected the address of the API that Confluent's clients speak; Apicurio's ends in "
    "/apis/ccompat/v7"
)


def check_registry(state: Examination) -> Iterator[Finding]:
    """registry: it answers, if there is one"""
    settings = need(state.settings, "settings")
    if settings.schema_registry_url:
        for address in settings.schema_registry_url.get_secret_value().split(","):
            yield look_at(address.strip())


def look_at(address: str) -> Finding:
    """Ask a registry for its subjects; the address is named without the user and the password it may hold."""
    try:
        request, shown = _request(address)
    except ValueError:  # what it says may hold a part of the password
        return Finding("registry", "problem", "its address is none: expected http://host:port or https://…", _MEANT)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            subjects = json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
            advice = "SCHEMA_REGISTRY_URL: put the user and the password of one who may read into it: user:password@"
            return Finding("registry", "problem", f"{shown} refuses to list its subjects ({error.code})", advice)
        return Finding("registry", "problem", f"{shown} answers {error.code} when asked for its subjects", _MEANT)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        advice = "start it (`farandole up --registry` starts one), or unset SCHEMA_REGISTRY_URL to do without"
        return Finding("registry", "problem", f"{shown} does not answer: {reason}", advice)
    except ValueError:  # no JSON
        subjects = None
    if not isinstance(subjects, list):
        return Finding("registry", "problem", f"{shown} is no Schema Registry: it lists no subjects", _MEANT)
    if missing := _without_client():
        return Finding("registry", "problem", f"{shown} answers; its client is not installed ({missing})", _CLIENT)
    return Finding("registry", "ok", f"{shown}, {len(subjects)} subjects")


def _without_client() -> str | None:
    """What the registry's client lacks, if it cannot be loaded."""
    try:
        from farandole.contracts.registry import client as registry_client  # noqa: F401  to see whether it can
    except ImportError as error:
        return str(error)
    return None


def _request(address: str) -> tuple[urllib.request.Request, str]:
    """The question, and the address as it may be shown. Raises ValueError for what is no address of the web."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(parts.scheme)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    bare = parts._replace(netloc=f"{host}:{parts.port}" if parts.port else host, query="", fragment="").geturl()
    request = urllib.request.Request(f"{bare.rstrip('/')}/subjects")
    if parts.username is not None:
        said = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(said.encode()).decode()}")
    return request, bare
