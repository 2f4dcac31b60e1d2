"""What the calls of one model have ended with since the database was told last."""

from __future__ import annotations

from dataclasses import dataclass, field

from farandole.models.errors import (
    Busy,
    ConnectionFailed,
    ModelError,
    Overloaded,
    RateLimited,
    ServerFailed,
    TimedOut,
)
from farandole.models.retry_after import retry_after
from farandole.models.values import Heard, Usage

#: Headers in which the API tells its own limits a minute, by what they limit.
_LIMITS = {
    "requests": "anthropic-ratelimit-requests-limit",
    "input": "anthropic-ratelimit-input-tokens-limit",
    "output": "anthropic-ratelimit-output-tokens-limit",
}

#: A minute. What is told beyond this is no limit.
_MOST = 10**12

#: What says that the API, and not the call, has failed.
FAILURES = (ServerFailed, ConnectionFailed, TimedOut)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Tokens of a call before it is made: as reckoned from its request, and as taken from the limits after what was learned."""

    input: float
    output: float
    input_taken: float = 0.0
    output_taken: float = 0.0


@dataclass(slots=True)
class Tokens:
    """Of one kind: sums over calls."""

    owed: float = 0.0  #: used, less what was taken for them
    used: float = 0.0
    estimated: float = 0.0

    def add(self, used: float, estimated: float, taken: float) -> None:
        self.owed += used - taken
        self.used += used
        self.estimated += estimated

    @property
    def share(self) -> float | None:
        """Used, of what was estimated; None where nothing was."""
        return self.used / self.estimated if self.estimated else None


@dataclass(slots=True)
class Report:
    """Told with the next statement; what others must know at once is `urgent`."""

    failed: int = 0  #: in a row, up to now
    succeeded: bool = False  #: at least one, before those
    overloaded: bool = False
    close: float | None = None  #: seconds from now that nobody may call
    why: str | None = None
    probe: str | None = None  #: whose probe has ended
    probe_won: bool | None = None  #: None: it was given up, or says nothing
    probing: str | None = None  #: whose probe is still under way
    limits: dict[str, float] = field(
        default_factory=dict
    )  #: the API's own, a minute, as told last; by the names of _LIMITS
    calls: int = 0  #: whose usage is in
    input: Tokens = field(default_factory=Tokens)
    output: Tokens = field(default_factory=Tokens)

    @property
    def urgent(self) -> bool:
        return bool(self.failed or self.overloaded or self.close is not None or self.probe or self.probing)

    def used(self, usage: Usage, estimate: Estimate) -> None:
        """Cache reads are not counted by the API's limits; writes are."""
        self.calls += 1
        self.input.add(usage.input_tokens + usage.cache_write_tokens, estimate.input, estimate.input_taken)
        self.output.add(usage.output_tokens, estimate.output, estimate.output_taken)

    def answered(self, heard: Heard, probe: str | None) -> None:
        """The API works; it may say that a limit has nothing left."""
        self.succeeded, self.failed = True, 0
        self._told(heard)
        if probe:
            self.probe, self.probe_won = probe, True
        if (wait := retry_after(heard.headers)) is not None and wait > 0:
            self._close(wait, "no more of a limit is left")

    def failed_with(self, error: ModelError, probe: str | None) -> None:
        """A call has failed; what its error means for all others."""
        if probe:
            self.probe = probe
        if error.heard:
            self._told(error.heard)
        after = getattr(error, "after", None)
        match error:
            case RateLimited() if after:
                self._close(after, "rate limited")
            case Busy():
                self.overloaded = True
                self.why = "overloaded" if isinstance(error, Overloaded) else "rate limited"
                if after:
                    self._close(after, self.why)
                if probe:
                    self.probe_won = False
            case ServerFailed() | ConnectionFailed() | TimedOut():
                self.failed += 1
                self.why = f"failing ({error.outcome})"
                if probe:
                    self.probe_won = False
            case _:  # the API has answered: not as one would like, but it works
                self.answered(error.heard or Heard(200), probe)

    def released(self, probe: str) -> None:
        """A probe was given up before it could tell anything."""
        self.probe = probe

    def renewed(self, probe: str) -> None:
        """A probe is still under way: nobody is to take it for dead."""
        self.probing = probe

    def _told(self, heard: Heard) -> None:
        for name, header in _LIMITS.items():
            told = heard.headers.get(header, "").strip()
            if told.isascii() and told.isdecimal() and 0 < int(told) < _MOST:
                self.limits[name] = float(told)

    def _close(self, seconds: float, why: str) -> None:
        self.close = max(seconds, self.close or 0.0)
        self.why = why
