"""Behaviours as JSON, for a script that is sent to a fake in another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from farandole.testing.messages import behaviours
from farandole.testing.messages.behaviours import Answer, Behaviour, Cut, Failure, Garbage, Hang, MidStream, Slow

_KINDS: dict[str, Callable[..., Behaviour]] = {
    kind.__name__: kind for kind in (Answer, Failure, MidStream, Cut, Slow, Hang, Garbage)
} | {
    made.__name__: made
    for made in (
        behaviours.rate_limited,
        behaviours.overloaded,
        behaviours.server_error,
        behaviours.no_credit,
        behaviours.context_too_long,
        behaviours.request_too_large,
        behaviours.bad_request,
        behaviours.html,
        behaviours.cut_json,
        behaviours.refusal,
        behaviours.truncated,
    )
}


def to_json(behaviour: Behaviour) -> dict[str, Any]:
    """Its class as `kind`, and its fields.

    >>> to_json(Slow(2, Hang()))
    {'kind': 'Slow', 'seconds': 2, 'then': {'kind': 'Hang', 'after': None}}
    """
    fields = asdict(behaviour)
    if isinstance(behaviour, Slow):
        fields["then"] = to_json(behaviour.then)
    return {"kind": type(behaviour).__name__, **fields}


def from_json(told: Any) -> Behaviour:
    """What `to_json` gave; a shortcut's name will do as a kind. Raises ValueError.

    >>> from_json({"kind": "no_credit", "status": 402}).type
    'billing_error'
    """
    if not isinstance(told, Mapping) or told.get("kind") not in _KINDS:
        raise ValueError(f"a behaviour is an object whose kind is one of {', '.join(_KINDS)}")
    fields = {name: _frozen(name, value) for name, value in told.items() if name != "kind"}
    try:
        return _KINDS[told["kind"]](**fields)
    except TypeError as error:
        raise ValueError(f"{told['kind']}: {error}") from error


def _frozen(name: str, value: Any) -> Any:
    if name == "then":
        return from_json(value)
    return tuple(value) if isinstance(value, list) and name in ("tool_use", "more") else value
