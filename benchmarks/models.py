"""Many model calls in flight in one process, against a fake API in another: how near to the ideal, and how much memory.

    python benchmarks/models.py [calls=10000] [at_once=2000] [seconds=1]

Prints a JSON line: seconds, the ideal (calls / at_once * seconds), processor time of a call, and the most memory this process
had. The fake and this process share the machine. The baseline is the ideal: the same calls as sleeps, run first.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

from farandole.models.claude import Claude
from farandole.models.values import Request

BODY = {
    "model": "claude-haiku-5-5",
    "max_tokens": 200,
    "messages": [{"role": "user", "content": "How does it sound? " * 20}],
}


def megabytes() -> float:
    """The most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024)


async def spread(calls: int, at_once: int, work: Callable[[], Awaitable[object]]) -> float:
    """Seconds for so many calls, so many of them at once."""
    left = iter(range(calls))

    async def one() -> None:
        for _ in left:
            await work()

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(at_once)))
    return time.perf_counter() - began


async def measure(url: str, calls: int, at_once: int, seconds: float) -> dict[str, object]:
    sleeps = await spread(calls, at_once, lambda: asyncio.sleep(seconds))
    claude = Claude("any", url)
    request = Request("claude-haiku-5-5", 200, BODY)
    await spread(at_once, at_once, lambda: claude.send(request, "warm"))
    cpu = time.process_time()
    took = await spread(calls, at_once, lambda: claude.send(request, "key"))
    cpu = time.process_time() - cpu
    await claude.close()
    return {
        "calls": calls,
        "at_once": at_once,
        "seconds": round(took, 2),
        "ideal": calls / at_once * seconds,
        "sleeps_alone": round(sleeps, 2),
        "percent_of_ideal": round(100 * calls / at_once * seconds / took, 1),
        "cpu_ms_a_call": round(1000 * cpu / calls, 2),
        "peak_mb": round(megabytes()),
    }


def main() -> None:
    calls, at_once, seconds = (float(given) for given in (*sys.argv[1:4], *("10000", "2000", "1")[len(sys.argv) - 1 :]))
    command = [sys.executable, "-m", "farandole.testing.messages", "--seconds", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as fake:
        url = (fake.stdout.readline() if fake.stdout else "").strip()
        try:
            print(json.dumps(asyncio.run(measure(url, int(calls), int(at_once), seconds))))
        finally:
            fake.terminate()


if __name__ == "__main__":
    main()
