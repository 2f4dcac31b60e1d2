"""What a handler is given besides its event: the envelope, its agent's resource, and the seam for model answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Generic

from typing_extensions import TypeVar

from farandole.envelope import Envelope
from farandole.errors import Poison

R = TypeVar("R", default=None)
T = TypeVar("T")

#: What `decided_by` says when no model answered: the rules given as `otherwise=` did.
OFFLINE_RULES = "offline rules"


class _Handed(Generic[R]):
    """What both kinds of context share."""

    def __init__(
        self,
        envelope: Envelope,
        attempt: int,
        resource: R,
        log: logging.Logger,
        answers: Mapping[type[Any], Any] | None = None,
    ) -> None:
        self.envelope = envelope
        self.attempt = attempt  #: from 1
        self.resource = resource  #: what the agent's `resource=` opened
        self.log = log
        self.decided_by = OFFLINE_RULES  #: who answered the last `ask`: shown with every decision
        self._answers = answers or {}

    def _ask(self, output: type[T], otherwise: Callable[[], T], check: Callable[[T], None] | None) -> T:
        answer = self._answers[output] if output in self._answers else otherwise()
        if not isinstance(answer, output):
            raise Poison("wrong_output", f"ask({output.__name__}): the answer is a {type(answer).__name__}")
        if check:
            check(answer)
        return answer


class Context(_Handed[R]):
    """The context of an async handler.

    `Context[Customers]` says what `ctx.resource` is; plain `Context` is for agents without one.
    """

    async def ask(self, output: type[T], *, otherwise: Callable[[], T], check: Callable[[T], None] | None = None) -> T:
        """A decision of type `output`. No model is connected in this version: `otherwise`, the agent's own rules, answers.

        `check` raises (ValueError, Reject, …) when the answer breaks a rule of the agent; it runs whoever answered. In
        tests, `deliver(…, answers={Output: …})` answers instead.
        """
        return self._ask(output, otherwise, check)


class BlockingContext(_Handed[R]):
    """The context of a plain (not async) handler; the same names, without await."""

    def ask(self, output: type[T], *, otherwise: Callable[[], T], check: Callable[[T], None] | None = None) -> T:
        """As `Context.ask`."""
        return self._ask(output, otherwise, check)
