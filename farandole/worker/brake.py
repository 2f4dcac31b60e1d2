"""The brake: a broken deploy must not empty its topic into the dead letters."""

from __future__ import annotations

from collections import Counter, deque

from farandole.outcome import DeadLettered, Outcome, Skipped, Suspended


class Brake:
    """Sees how events end, in any order, and says when to stop. Knows no clock and does nothing itself.

    Args:
        agent: for the text.
        in_a_row: dead letters without anything else between them that are too many; 0 never stops.
        ratio: of dead letters among the last `of` outcomes that is too much, once there are as many.

    >>> brake = Brake("sort", in_a_row=2)
    >>> brake.saw(DeadLettered("rejected", "no such colour"))
    >>> brake.saw(DeadLettered("rejected", "no such size"))  # doctest: +ELLIPSIS
    '2 events in a row were dead-lettered, most of them (2) as rejected, such as: no such size; look at them with ...'
    """

    def __init__(self, agent: str, in_a_row: int = 100, ratio: float = 0.5, of: int = 1000) -> None:
        self._agent = agent
        self._in_a_row = in_a_row
        self._most = ratio * of
        self._of = of
        self._latest: deque[str] = deque(maxlen=of)  #: the causes; "" for what was no dead letter
        self._causes: Counter[str] = Counter()
        self._errors: dict[str, str] = {}
        self._row = 0
        self.reason: str | None = None  #: why the worker is to stop; stays once it is said

    def saw(self, outcome: Outcome) -> str | None:
        """Count one outcome. The reason to stop, or None. What was skipped or put aside says nothing."""
        if self._in_a_row and not isinstance(outcome, Skipped | Suspended) and not self.reason:
            self._count(outcome)
            if self._row >= self._in_a_row:
                latest = list(self._latest)[-self._row :]
                self.reason = self._say(f"{self._row:,} events in a row were", Counter(latest))
            elif len(self._latest) == self._of and self._causes.total() > self._most:
                self.reason = self._say(f"{self._causes.total():,} of {self._of:,} events were", self._causes)
        return self.reason

    def _count(self, outcome: Outcome) -> None:
        cause = ""
        if isinstance(outcome, DeadLettered):
            cause = outcome.cause
            self._errors[cause] = outcome.error
        if len(self._latest) == self._of and self._latest[0]:
            self._causes[self._latest[0]] -= 1
        self._latest.append(cause)
        if cause:
            self._causes[cause] += 1
        self._row = self._row + 1 if cause else 0

    def _say(self, what: str, causes: Counter[str]) -> str:
        (cause, number), *_ = causes.most_common(1)
        return (
            f"{what} dead-lettered, most of them ({number:,}) as {cause}, such as: {self._errors[cause][:300]}; "
            f"look at them with `farandole dead list --agent {self._agent}`; a restart goes on"
        )
