"""How a model call fails, named by what happens next: tried again, dead-lettered, or the agent stops.

`outcome` is the stable word for it in the table `usage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from farandole.errors import ExitCode, Poison, Retry, Stopped
from farandole.models.values import Heard, Usage


class ModelError(Exception):
    """What all of them are. `usage` is what the failed call cost, where the API told."""

    outcome: ClassVar[str] = "failed"
    #: Whether a call without a reported usage may have been charged: it is then booked at its upper bound.
    may_cost: bool = False
    #: Whether the request did not leave, so that it costs nothing for certain.
    unsent: bool = False
    #: Whether the attempt that it ends counts.
    counted: bool = True
    usage: Usage | None = None
    heard: Heard | None = None
    request_id: str | None = None
    model: str = ""

    def about(
        self, *, usage: Usage | None = None, heard: Heard | None = None, request_id: str | None = None, model: str = ""
    ) -> ModelError:
        """The same error, with what is known of the call."""
        self.usage, self.heard, self.request_id, self.model = usage, heard, request_id, model or self.model
        return self

    @property
    def headers(self) -> Mapping[str, str]:
        return self.heard.headers if self.heard else {}


class _Again(ModelError, Retry):
    """Transient: an attempt has failed, the next one may do."""

    def __init__(self, message: str, *, after: float | None = None) -> None:
        Retry.__init__(self, message, after=after)


class ServerFailed(_Again):
    """The API failed (5xx)."""

    outcome = "server_error"


class ConnectionFailed(_Again):
    """No connection, or it was lost before the reply began."""

    outcome = "connection"
    may_cost = True


class TimedOut(_Again):
    """The reply took longer than the call may."""

    outcome = "timeout"
    may_cost = True


class StreamCut(_Again):
    """The reply broke off: the stream ended without its end, or with an error event."""

    outcome = "cut"
    may_cost = True


class Busy(_Again):
    """The API has no room now, whatever the event: no attempt is counted."""

    outcome = "busy"
    counted = False


class RateLimited(Busy):
    """429. `after` is the server's retry-after, in seconds."""

    outcome = "rate_limited"


class Overloaded(Busy):
    """529, or an `overloaded_error` in the middle of a stream."""

    outcome = "overloaded"


class _Final(ModelError, Poison):
    """The same call would end the same way: the event is dead-lettered, unless the handler catches it."""

    def __init__(self, message: str) -> None:
        Poison.__init__(self, self.outcome, message)


class Truncated(_Final):
    """The reply reached max_tokens, with the larger budget too."""

    outcome = "truncated"


class Refused(_Final):
    """The model declined (stop_reason `refusal`)."""

    outcome = "refused"


class InvalidOutput(_Final):
    """No object in the reply fits the schema, several do, or it breaks a rule of the agent; a repair did not help."""

    outcome = "invalid_output"


class ContextTooLong(_Final):
    """The request is larger than the model's context, or than the API takes."""

    outcome = "context_too_long"


class _Stops(ModelError, Stopped):
    """Nothing an event can help: the agent stops, nothing is dead-lettered."""

    def __init__(self, message: str) -> None:
        Stopped.__init__(self, message)
        self.exit_code = ExitCode.STOPPED


class NoCredit(_Stops):
    """The account has no credit."""

    outcome = "no_credit"


class NotAllowed(_Stops):
    """The key is wrong or may not use this model (401, 403), or there is no such model (404)."""

    outcome = "not_allowed"


class BadRequest(_Stops):
    """The API does not take the request (400): a mistake of configuration, such as a schema it cannot use."""

    outcome = "bad_request"


class Unpriced(_Stops):
    """There is a budget, and nobody knows what the model costs: it is not called."""

    outcome = "unpriced"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"model {model} has no known price, and there is a budget: name its price in the file of FARANDOLE_PRICES, or "
            "correct the model's id"
        )


#: What a handling ends with for good, by outcome: raised again when it is replayed.
FINAL: dict[str, type[_Final]] = {kind.outcome: kind for kind in (Truncated, Refused, InvalidOutput, ContextTooLong)}
