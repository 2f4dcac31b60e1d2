"""The pace that all workers of all agents share, through Postgres."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from types import TracebackType

from farandole.models.configured import Limit
from farandole.models.errors import ModelError
from farandole.models.values import Heard, Request, Usage
from farandole.outage import Outage
from farandole.pace.clock import DatabaseClock
from farandole.pace.lane import PROBE, Go, Lane
from farandole.pace.report import FAILURES, Estimate, Report
from farandole.pace.store import Store
from farandole.session import Aside, Session
from farandole.settings import Settings

#: Of a request, to a token: roughly so for English prose; what is learned of real usage corrects it.
_BYTES = 4
#: Seconds between two signs of life of a probe; of its time, so that two of them may be missed.
_RENEW = PROBE / 3
#: Seconds. At the end of a worker, for what its calls leave to be written.
_LEAVE = 5.0


class SharedPace:
    """One a worker, opened by `async with`. Implements `farandole.models.pace.Pace`.

    On the event loop; its statements run on a thread and connection of its own.

    Args:
        clock: seconds to add to the database's clock; for tests.
    """

    def __init__(
        self,
        settings: Settings,
        agent: str,
        outage: Callable[[], Outage],
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._settings = settings
        self._session = Aside(Session(settings, f"farandole {agent} pace", outage), f"pace-{agent}")
        self._store = Store(fingerprint(settings), clock)
        self._clock = DatabaseClock()
        self._lanes: dict[str, Lane] = {}

    async def __aenter__(self) -> SharedPace:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE):
                for lane in self._lanes.values():
                    await lane.settled()
        self._session.close()

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[CallTurn]:
        """Wait for the turn of `request`, for as long as it takes; the block is the call.

        Waits out outages of Postgres; raises Stopped when one lasts too long: without limits, no call.
        """
        lane = self._lane(request.model)
        async with lane.room:
            estimate = Estimate(request.input_bytes / _BYTES, float(request.max_tokens))
            turn = CallTurn(lane, await lane.go(estimate))
            try:
                yield turn
            finally:
                turn.left()

    @property
    def paused(self) -> str | None:
        """Why calls wait now, such as "claude-haiku-5-5: rate limited, 171 s more"; None while none has to."""
        return "; ".join(why for lane in self._lanes.values() if (why := lane.view.paused)) or None

    def _lane(self, model: str) -> Lane:
        if model not in self._lanes:
            limit = self._settings.limits.get(model, Limit())
            self._lanes[model] = Lane(model, limit, self._store, self._session.run, self._clock)
        return self._lanes[model]


class CallTurn:
    """Implements `farandole.models.pace.Turn`."""

    def __init__(self, lane: Lane, go: Go) -> None:
        self._lane = lane
        self._taken = go.taken
        self._probe = go.probe
        if go.probe:
            asyncio.get_running_loop().call_later(_RENEW, self._renew)

    def answered(self, usage: Usage, heard: Heard) -> None:
        """It was answered: what it used, and what the API said of its limits."""
        probe, self._probe = self._probe, None

        def note(report: Report) -> None:
            report.used(usage, self._taken)
            report.answered(heard, probe)

        self._lane.tell(note)

    def failed(self, error: ModelError) -> None:
        """It failed. The attempt of a probe does not count: the event is not to blame."""
        probe, self._probe = self._probe, None
        if probe and isinstance(error, FAILURES):
            error.counted = False

        def note(report: Report) -> None:
            if error.usage is not None:
                report.used(error.usage, self._taken)
            report.failed_with(error, probe)

        self._lane.tell(note)

    def _renew(self) -> None:
        """A long answer is waited for: its worker lives."""
        if probe := self._probe:
            self._lane.tell(lambda report: report.renewed(probe))
            asyncio.get_running_loop().call_later(_RENEW, self._renew)

    def left(self) -> None:
        """The block has ended; a probe that told nothing is given up, for another one."""
        probe, self._probe = self._probe, None
        if probe:
            self._lane.tell(lambda report: report.released(probe))


def fingerprint(settings: Settings) -> str:
    """Stands for the API key in the database; it does not give the key away."""
    key = settings.anthropic_api_key
    return sha256(b"farandole pace " + key.get_secret_value().encode()).hexdigest()[:16] if key else "none"
