"""What a fake in a process of its own is asked and told over HTTP, below paths that begin with an underscore."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from farandole.testing.messages.behaviours import Behaviour
from farandole.testing.messages.described import from_json

if TYPE_CHECKING:
    from farandole.testing.messages.calls import Call
    from farandole.testing.messages.connection import Request

_JSON = {"content-type": "application/json"}


class Controlled(Protocol):
    """What of a fake is reached from outside."""

    @property
    def calls(self) -> Sequence[Call]: ...
    @property
    def count(self) -> int: ...
    @property
    def most_in_flight(self) -> int: ...
    @property
    def violations(self) -> Sequence[Call]: ...
    def totals(self, by: str = "model") -> dict[str, dict[str, int]]: ...
    def script(self, behaviours: Iterable[Behaviour]) -> None: ...
    def reply(self, behaviour: Behaviour) -> None: ...


def controlled(fake: Controlled, request: Request) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body.

    GET /_calls are the calls (without their bodies: ?bodies=no), GET /_summary what they come to; POST /_script takes a
    list of behaviours as `described.to_json` writes them, POST /_reply one.
    """
    try:
        status, found = _done(fake, request)
    except ValueError as error:
        status, found = 400, {"error": str(error)}
    return status, _JSON, json.dumps(found).encode()


def _done(fake: Controlled, request: Request) -> tuple[int, Any]:
    match request.method, request.path:
        case "GET", "/_calls":
            calls = [call.to_json() for call in fake.calls]
            return 200, [call | {"body": None} for call in calls] if request.query == "bodies=no" else calls
        case "GET", "/_summary":
            return 200, {
                "count": fake.count,
                "most_in_flight": fake.most_in_flight,
                "violations": len(fake.violations),
                "models": fake.totals(),
            }
        case "POST", "/_script":
            behaviours = [from_json(told) for told in json.loads(request.raw or b"[]")]
            fake.script(behaviours)
            return 200, {"scripted": len(behaviours)}
        case "POST", "/_reply":
            fake.reply(from_json(json.loads(request.raw or b"null")))
            return 200, {}
        case _:
            return 404, {"error": f"no {request.method} {request.path}"}
