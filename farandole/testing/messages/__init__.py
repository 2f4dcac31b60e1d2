"""FakeMessages: a local server that speaks the Messages API, scripted or by rules, and counts what it is asked."""

from farandole.testing.messages.behaviours import (
    Answer,
    Behaviour,
    Cut,
    Failure,
    Garbage,
    MidStream,
    Slow,
    bad_request,
    context_too_long,
    no_credit,
    overloaded,
    rate_limited,
    refusal,
    server_error,
    truncated,
)
from farandole.testing.messages.calls import Call
from farandole.testing.messages.fake import FakeMessages

__all__ = [
    "Answer",
    "Behaviour",
    "Call",
    "Cut",
    "Failure",
    "FakeMessages",
    "Garbage",
    "MidStream",
    "Slow",
    "bad_request",
    "context_too_long",
    "no_credit",
    "overloaded",
    "rate_limited",
    "refusal",
    "server_error",
    "truncated",
]
