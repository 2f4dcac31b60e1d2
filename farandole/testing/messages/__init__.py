"""FakeMessages: a local server that speaks the Messages API, scripted or by rules, and counts what it is asked."""

from farandole.testing.messages.behaviours import (
    Answer,
    Behaviour,
    Cut,
    Failure,
    Garbage,
    Hang,
    MidStream,
    Slow,
    bad_request,
    context_too_long,
    cut_json,
    html,
    no_credit,
    overloaded,
    rate_limited,
    refusal,
    request_too_large,
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
    "Hang",
    "MidStream",
    "Slow",
    "bad_request",
    "context_too_long",
    "cut_json",
    "html",
    "no_credit",
    "overloaded",
    "rate_limited",
    "refusal",
    "request_too_large",
    "server_error",
    "truncated",
]
