"""A parent to be killed: prints the pid of the process it has started, which is idle or (`hang`) busy."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from farandole import load_agent
from farandole.processes import Processes
from tests.unit.computing import Task
from tests.unit.test_processes import ENVELOPE


async def main() -> None:
    async with Processes(load_agent(Path(__file__).parent / "computing.py")) as processes:
        print(*processes.pids, flush=True)
        if sys.argv[1]:
            await processes.run(Task(do=sys.argv[1]), ENVELOPE.raw, 1)
        await asyncio.sleep(60)


asyncio.run(main())
