"""What a process knows of whether a model may be called: what the database said last, and what its own calls just heard."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from farandole.pace.store import REOPENING, Seen

log = logging.getLogger("farandole.pace")

#: Seconds. Nobody calls on an older answer without looking again.
FRESH = 1.0
#: Seconds. An older answer does not show a brake: nobody waits here, and so nobody looked whether it is off.
_SHOWN = 5.0


class View:
    """Of one model. Tells the log once when it closes, and once when it opens.

    Args:
        now: seconds on the database's clock.
    """

    def __init__(self, model: str, now: Callable[[], float], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._model = model
        self._now = now
        self._monotonic = monotonic
        self._seen = Seen(0.0)
        self._at = float("-inf")  #: monotonic; when it was seen
        self._heard: tuple[float, str] | None = None  #: monotonic: closed until then, as a call of ours was told
        self._told = False

    def saw(self, seen: Seen) -> None:
        """The database has answered."""
        self._seen, self._at = seen, self._monotonic()
        self._tell()

    def heard(self, seconds: float, reason: str) -> None:
        """A call of this process was told to come again; the database does not know it yet."""
        until = self._monotonic() + seconds
        if self._heard is None or until > self._heard[0]:
            self._heard = until, reason
        self._tell()

    def written(self) -> None:
        """Now the database knows what the calls have heard."""
        self._heard = None

    @property
    def stale(self) -> bool:
        return self._monotonic() - self._at > FRESH

    @property
    def braked(self) -> bool:
        """Whether only probes may call."""
        return self._seen.level > 0

    @property
    def free(self) -> bool:
        """Whether nothing restrains calls but the limits."""
        return not self.braked and self.closed_for <= 0 and self._seen.now - self._seen.opens > REOPENING

    @property
    def closed_for(self) -> float:
        """Seconds, as far as is known; 0 when it is open, or waits for a probe."""
        mine = self._heard[0] - self._monotonic() if self._heard else 0.0
        return max(mine, self._left(), 0.0)

    @property
    def paused(self) -> str | None:
        """Why no calls are made now, for people; None while they are."""
        reason = self._heard[1] if self._heard else self._seen.reason or "closed"
        if (left := self.closed_for) > 0:
            return f"{self._model}: {reason}, {max(left, 1):.0f} s more"
        known = self._monotonic() - self._at <= _SHOWN
        return f"{self._model}: {reason}, waiting for a probe" if self.braked and known else None

    def _left(self) -> float:
        return self._seen.closed_until - max(self._now(), self._seen.now) if self._seen.closed_until else 0.0

    def _tell(self) -> None:
        paused = self.paused
        if paused and not self._told:
            log.warning("closed %s", paused)
        elif not paused and self._told:
            log.info("open %s", self._model)
        self._told = paused is not None
