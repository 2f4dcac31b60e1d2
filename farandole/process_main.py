"""What a process of `farandole.processes` does: load the agent, then answer one call after the other."""

from __future__ import annotations

import ctypes
import logging
import os
import pickle
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import Any

from tblib import pickling_support  # type: ignore[import-untyped]

from farandole.agent import Agent, load_agent
from farandole.context import BlockingContext
from farandole.envelope import Envelope
from farandole.errors import Fail, Poison, Reject, Retry

#: Before everything that goes through the pipe: its kind, and its size in bytes.
HEAD = struct.Struct(">BQ")

#: Frames. Of a traceback the innermost ones are kept: a handler that recurses without end has a thousand.
FRAMES = 50


class Kind(IntEnum):
    """What goes through the pipe: to the process, and from it."""

    CALL = 1
    END = 2
    READY = 3
    LOGGED = 4
    RETURNED = 5
    RAISED = 6


@dataclass(frozen=True, slots=True)
class Start:
    """The first call: which agent to load, and what is logged (levels of the root logger and of ours)."""

    agent: str
    root_level: int
    level: int


class Pipe:
    """The process's end; what its threads send does not mix."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = connection.makefile("rb")
        self._sending = threading.Lock()

    def receive(self) -> bytes | None:
        """The next call, or None when it is time to end."""
        head = self._reader.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        kind, size = HEAD.unpack(head)
        return None if kind == Kind.END else self._reader.read(size)

    def send(self, kind: Kind, data: bytes = b"") -> None:
        with self._sending:
            self._connection.sendall(HEAD.pack(kind, len(data)) + data)


class ToParent(logging.Handler):
    """Sends what is logged to the parent process, whose log it goes into."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._pipe.send(Kind.LOGGED, pickle.dumps(self._fields(record)))
        except Exception:  # noqa: BLE001  as other handlers do: a log line that cannot be made is no fault of the event
            self.handleError(record)

    @staticmethod
    def _fields(record: logging.LogRecord) -> dict[str, Any]:
        """Extra fields stay behind: they may not pickle, and no formatter of ours shows them."""
        names = ("name", "levelno", "levelname", "created", "msecs", "pathname", "lineno", "funcName", "process")
        found: dict[str, Any] = {name: getattr(record, name) for name in names}
        found["msg"] = record.getMessage()
        if record.exc_info and record.exc_info[1]:
            error = _portable(record.exc_info[1])
            found["exc_info"] = (type(error), error, error.__traceback__)
        return found


def main(fd: int) -> None:
    """Serve the pipe with this file descriptor until it ends."""
    _end_with_parent(fd)
    # What is sent to the whole group is for the parent, which drains and then ends us. Handlers, not SIG_IGN: what the
    # user's code starts must not inherit that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    pipe = Pipe(socket.socket(fileno=fd))
    first = pipe.receive()
    if first is None:
        return
    start: Start = pickle.loads(first)
    logging.basicConfig(level=start.root_level, handlers=[ToParent(pipe)], force=True)
    logging.getLogger("farandole").setLevel(start.level)
    try:
        agent = load_agent(start.agent)
    except BaseException as error:  # noqa: BLE001  said by the parent
        pipe.send(Kind.RAISED, _packed(error))
        return
    pipe.send(Kind.READY)
    while (request := pipe.receive()) is not None:
        pipe.send(*_answer(agent, request))


def _answer(agent: Agent, request: bytes) -> tuple[Kind, bytes]:
    try:
        payload, envelope, attempt = pickle.loads(request)
        result = _call(agent, payload, Envelope(envelope), attempt)
        try:
            return Kind.RETURNED, pickle.dumps(result)
        except Exception as odd:
            what = f"the handler returned {type(result).__name__}, which cannot leave its process: {odd}"
            raise Poison("wrong_output", what) from odd
    except BaseException as error:  # noqa: BLE001  raised again in the parent
        return Kind.RAISED, _packed(error)


def _call(agent: Agent, payload: Any, envelope: Envelope, attempt: int) -> Any:
    handler = agent.handler
    assert handler is not None  # load_agent has seen to it
    if handler.takes_context:
        context = BlockingContext(envelope, attempt, None, logging.getLogger("farandole.handling"))
        result = handler.function(payload, context)
    else:
        result = handler.function(payload)
    return tuple(result) if isinstance(result, Iterator) else result  # a generator's body runs here


def _packed(error: BaseException) -> bytes:
    return pickle.dumps((f"{type(error).__name__}: {_words(error)}", pickle.dumps(_portable(error))))


def _portable(error: BaseException) -> BaseException:
    """The error itself when it can be pickled and read again, with its traceback and causes; else one that says the same."""
    trace = _innermost(error.__traceback__)
    if isinstance(error, Exception | SystemExit) and _pickles(error.with_traceback(trace)):
        return error
    standing_in = _like(error).with_traceback(trace)
    return standing_in if _pickles(standing_in) else standing_in.with_traceback(None)


def _like(error: BaseException) -> Exception:
    """What the runtime takes for the same: its own words keep their meaning, whatever a user's subclass holds."""
    match error:
        case Fail():
            return Fail(error.reason, error.detail)
        case Retry():
            return Retry(_words(error), after=error.after)
        case Reject():
            return Reject(_words(error))
        case Poison():
            return Poison(error.cause, _words(error))
        case _:
            return RuntimeError(f"{type(error).__name__}: {_words(error)}")


def _pickles(error: BaseException) -> bool:
    try:
        pickling_support.install(error)
        return isinstance(pickle.loads(pickle.dumps(error)), type(error))
    except Exception:  # noqa: BLE001  a user's class may do anything when it is pickled
        return False


def _innermost(trace: TracebackType | None) -> TracebackType | None:
    """The last FRAMES of a traceback."""
    found, depth = trace, 0
    while trace:
        trace, depth = trace.tb_next, depth + 1
        if depth > FRAMES and found:
            found = found.tb_next
    return found


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  a user's exception may not even have a text
        return ""


def _end_with_parent(fd: int) -> None:
    """End at once when the parent does. Its end of the pipe closes then; on Linux the kernel kills us besides, also when
    a handler in C never lets another thread run."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG

    def watch() -> None:
        poll = select.poll()
        poll.register(fd, 0)  # nothing but the other end's closing
        poll.poll()
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()
