"""Shared limits at work: processes that call a counting HTTP server as fast as they may, beside the same without limits.

    python benchmarks/limits.py [seconds=16] [processes=4]

Prints a JSON line a shape: the most that any window held, of what was allowed in it; the part of the limit that was used;
statements for a call. Windows are of 10 s (a sixth of the minute's limit: stricter than the API is), and of 60 s where the
run is long enough. The first seconds do not count: what calls use is learned in them. Ideal is 100 % and never above it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from farandole import migrate
from farandole.models.configured import Limit
from farandole.models.values import Heard, Request, Usage
from farandole.outage import Outage
from farandole.pace.shared import SharedPace
from farandole.settings import load_settings

MODEL = "bench"
#: Waiting or calling at once in a process.
AT_ONCE = 100
#: Seconds at the beginning that are not looked at.
WARM = 10.0
SHAPES: dict[str, Limit] = {
    "requests": Limit(requests=3000),
    "input_tokens": Limit(input_tokens=1_000_000),
    "output_tokens": Limit(output_tokens=400_000),
    "no limiter": Limit(),
}


class Counting:
    """A server that counts (second, kind, amount) when a request arrives, and answers it somewhat later."""

    def __init__(self) -> None:
        self.arrived: list[tuple[float, dict[str, int]]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                body = await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
                tokens = {
                    "requests": 1,
                    "input_tokens": len(body) * 10 // 35,
                    "output_tokens": random.randint(100, 300),
                }
                self.arrived.append((time.monotonic(), tokens))
                await asyncio.sleep(random.uniform(0.1, 0.9))
                answer = json.dumps(tokens).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))
        except (asyncio.IncompleteReadError, ConnectionResetError):
            pass
        finally:
            writer.close()


async def calls(port: int, shape: str, namespace: str, end: float) -> None:
    """One process, until `end` (monotonic, which processes share): prints how many statements it sent, and calls it made."""
    settings = load_settings(namespace=namespace, limits={MODEL: SHAPES[shape]})
    async with SharedPace(settings, "bench", lambda: Outage("benchmark", 60)) as pace:
        statements = counted(pace)
        made = [0]

        async def one() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while time.monotonic() < end:
                text = "x" * random.randint(1000, 3000)
                async with pace.turn(Request(MODEL, 1024, {"text": text})) as turn:
                    writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text.encode()))
                    head = await reader.readuntil(b"\r\n\r\n")
                    found = json.loads(await reader.readexactly(int(head.split(b": ")[1])))
                    made[0] += 1
                    turn.answered(Usage(found["input_tokens"], found["output_tokens"]), Heard(200))
            writer.close()

        await asyncio.wait([asyncio.create_task(one()) for _ in range(AT_ONCE)], timeout=end - time.monotonic())
        print(json.dumps({"statements": statements[0], "calls": made[0], "cpu": time.process_time()}))


def counted(pace: SharedPace) -> list[int]:
    """The number of statements that the pace sends from now on."""
    found, run = [0], pace._session.run

    def counting(work: Any) -> Any:
        found[0] += 1
        return run(work)

    pace._session.run = counting  # type: ignore[method-assign]
    return found


def largest(arrived: Sequence[tuple[float, int]], window: float) -> int:
    """The most that any window held."""
    most = inside = first = 0
    for at, amount in arrived:
        inside += amount
        while arrived[first][0] <= at - window:
            inside -= arrived[first][1]
            first += 1
        most = max(most, inside)
    return most


async def measure(shape: str, seconds: float, processes: int) -> dict[str, Any]:
    namespace = f"bench{time.time_ns() % 10_000_000}"
    migrate.migrate(load_settings(namespace=namespace))
    server = Counting()
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        end = time.monotonic() + seconds
        port = listening.sockets[0].getsockname()[1]
        command = [sys.executable, __file__, "calls", str(port), shape, namespace, str(end)]
        running = [
            await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE) for _ in range(processes)
        ]
        told = [json.loads((await one.communicate())[0]) for one in running]
        await asyncio.sleep(1)  # for answers under way
    kind = shape if shape in ("input_tokens", "output_tokens") else "requests"
    limit = int(getattr(SHAPES[shape], kind) or SHAPES["requests"].requests or 0)
    began = server.arrived[0][0] + min(WARM, seconds / 3)
    seen = [(at, tokens[kind]) for at, tokens in server.arrived if began <= at < end]
    made = sum(one["calls"] for one in told)
    windows = {f"most_in_{w}_s": f"{largest(seen, w)} of {limit * w // 60}" for w in (10, 60) if end - began >= w}
    return {
        "shape": shape,
        "calls": made,
        "calls_a_second": round(len(seen) / (end - began), 1),
        **windows,
        "used_percent": round(100 * sum(amount for _, amount in seen) / (end - began) * 60 / limit, 2),
        "statements_a_call": round(sum(one["statements"] for one in told) / made, 3),
        "cpu_ms_a_call": round(1000 * sum(one["cpu"] for one in told) / made, 2),
    }


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    if sys.argv[1:2] == ["calls"]:
        asyncio.run(calls(int(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5])))
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 16.0
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    for shape in SHAPES:
        print(json.dumps(asyncio.run(measure(shape, seconds if shape != "no limiter" else 5.0, processes))), flush=True)


if __name__ == "__main__":
    main()
