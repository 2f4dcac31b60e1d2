"""An agent whose handler runs in processes: it does what its event tells it to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from farandole import Agent, BlockingContext, Event, Fail, Reject, Retry
from farandole.errors import Poison


class Task(Event, topic="jobs.tasks", stage="tasks"):
    do: str = ""
    number: int = 0


class Solved(Event, topic="jobs.solved", stage="solved"):
    number: int
    pid: int
    tried: int = 1
    by: str = ""


class Odd(Exception):
    """Its text is not what it was made from: plain pickle cannot bring it back."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} is not {right}")
        self.left = left


class Stubborn(Retry):
    """Holds what cannot be pickled at all."""

    def __init__(self) -> None:
        super().__init__("not now", after=0.25)
        self.lock = threading.Lock()


agent = Agent("solve", cpu=2, timeout="30s", attempts=2)


@agent.handle
def solve(task: Task, ctx: BlockingContext) -> list[Solved]:
    act(task, ctx)
    if task.do == "unpicklable result":
        return threading.Lock()  # type: ignore[return-value]
    by = ctx.ask(str, otherwise=lambda: "rules")
    result = Solved(number=task.number**2, pid=os.getpid(), tried=ctx.attempt, by=by)
    return (solved for solved in [result]) if task.do == "generator" else [result]  # type: ignore[return-value]


def act(task: Task, ctx: BlockingContext) -> None:
    match task.do.split():
        case ["exit", code]:
            os._exit(int(code))
        case ["kill"]:
            os.kill(os.getpid(), signal.SIGKILL)
        case ["kill", "once"] if ctx.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case ["fork", pid]:
            forked = os.fork()
            if forked == 0:
                time.sleep(120)  # holds the pipe open
                os._exit(0)
            Path(pid).write_text(str(forked), encoding="utf-8")
            os._exit(4)
        case ["hang"]:
            spin()
        case ["recurse"]:
            recurse(0)
        case ["log"]:
            ctx.log.warning("computing %d", task.number)
            try:
                raise KeyError("logged")
            except KeyError:
                ctx.log.exception("with a traceback")
        case ["print"]:
            print("to stdout", flush=True)
            subprocess.run([sys.executable, "-c", "print('from below')"], check=True)
        case [name] if name in ERRORS:
            raise ERRORS[name]()


ERRORS: dict[str, Callable[[], BaseException]] = {
    "fail": lambda: Fail("tired", "after 3 tasks"),
    "reject": lambda: Reject("never"),
    "retry": lambda: Retry("later", after=7.5),
    "poison": lambda: Poison("invalid", "no number"),
    "odd": lambda: Odd(1, 2),
    "stubborn": Stubborn,
    "local": lambda: type("Local", (ValueError,), {})("made here"),
    "sysexit": lambda: SystemExit(3),
    "interrupt": KeyboardInterrupt,
    "missing": lambda: FileNotFoundError(2, "No such file", "model.bin"),
}


def spin() -> Iterator[None]:
    while True:
        pass


def recurse(depth: int) -> int:
    return recurse(depth + 1) + 1
