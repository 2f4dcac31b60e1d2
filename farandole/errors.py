"""Errors, named by what happens next: the handler's own words, what stops a worker, and what ends a command."""

from __future__ import annotations

from enum import IntEnum

from farandole import durations


class ExitCode(IntEnum):
    """How a command ended. Numbers are part of the interface: scripts may test them."""

    OK = 0
    FAILED = 1  #: the command ran and its answer is no (a check found drift, a job failed)
    USAGE = 2  #: an argument or option is wrong
    CONFIGURATION = 3  #: a setting, an agent file or a schema is wrong
    NOT_FOUND = 4  #: the job, topic or file asked for does not exist
    UNREACHABLE = 5  #: the broker or the database does not answer
    TIMEOUT = 6  #: a deadline given by the user passed
    STOPPED = 7  #: a worker or projector stopped by itself; its reason was printed
    STANDS_STILL = 8  #: something waits for a person: a gap, a brake, an outage, a suspended projection
    NO_NETWORK = 10  #: a first download was needed and no registry answered
    DISK_FULL = 11
    NO_JAVA = 12  #: no usable Java runtime
    PORT_TAKEN = 13  #: another process holds a port the stack was told to use
    DATA_VERSION = 14  #: the data folder was written by another version
    STACK_FAILED = 15  #: a service of the local stack did not start
    NO_DOCKER = 16  #: testcontainers were asked for and no Docker engine answers
    INTERRUPTED = 130


class FarandoleError(Exception):
    """A mistake or fault a person can act on: one sentence, printed without a traceback.

    >>> error = FarandoleError("setting FARANDOLE_FLOW is empty", ExitCode.CONFIGURATION)
    >>> (str(error), error.exit_code.name)
    ('setting FARANDOLE_FLOW is empty', 'CONFIGURATION')
    """

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ConfigurationError(FarandoleError):
    """A setting, an agent, an event class or a projection is written wrong; nothing starts."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.CONFIGURATION)


class Unreachable(FarandoleError):
    """The broker or the database does not answer; work waits, nothing is dead-lettered for it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.UNREACHABLE)


class Stopped(FarandoleError):
    """A worker or projector stops by itself, with its reason; the offsets stay where they are."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.STOPPED)


class Poison(Exception):
    """This record can never be handled: it is dead-lettered (by an agent) or parked (by a projector), raw.

    `cause` is a stable word for filters, the message is for people.
    """

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


#: Seconds. More is a mistake of units; the database has no date for the largest numbers.
LONGEST = 366 * 86_400


class Retry(Exception):
    """Raised by a handler: try this event again, `after` so long (default: the agent's backoff).

    `after` is a number of seconds, or text such as "5s" or "2m"; the attribute is in seconds. Raises ValueError for what
    is neither, or longer than a year.
    """

    def __init__(self, reason: str = "the handler asked for a retry", *, after: float | str | None = None) -> None:
        super().__init__(reason)
        self.after = None if after is None else durations.read(after)
        if after is not None and (self.after is None or not 0 <= self.after <= LONGEST):
            expected = f"expected seconds, from 0 to {LONGEST:,} (a year), or a duration such as '5s' or '2m'"
            raise ValueError(f"Retry(after={after!r}): {expected}")


class ProjectionBehind(Retry):
    """`ctx.job()` has waited in vain for the projector: the event is put off. No attempt is counted for what is no fault of
    the handler, so nothing is dead-lettered for it."""

    counted = False


class Reject(Exception):
    """Raised by a handler: this event cannot be handled, now or later. It is dead-lettered; the job is blocked."""


class Fail(Exception):
    """Raised by a handler: the job ends here by decision. Emits the flow's `failed` event, terminal for this run.

    `reason` is a stable word (a str or a StrEnum member), `detail` is for people.
    """

    def __init__(self, reason: str, detail: str | None = None) -> None:
        super().__init__(reason if detail is None else f"{reason}: {detail}")
        self.reason = str(reason)
        self.detail = None if detail is None else str(detail)
