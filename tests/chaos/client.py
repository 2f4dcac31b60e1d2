"""The part of the load that the project's own client submits, as a program would that must get its jobs in."""

from __future__ import annotations

import asyncio
import threading
import time

from farandole.client import Client, Submission
from farandole.errors import Unreachable
from farandole.settings import Settings
from tests.chaos.flow.events import Sent
from tests.chaos.schedule import Load
from tests.chaos.sending import handed_in

#: Jobs submitted at once.
CHUNK = 5


class Submitting:
    """Submits jobs all along the run; one that fails is submitted again, under the same key."""

    def __init__(self, settings: Settings, load: Load) -> None:
        self.failures: list[str] = []
        self._settings = settings
        self._load = load
        self._thread = threading.Thread(target=self._submit_all, name="client", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait until all are submitted; False when they are not yet."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _submit_all(self) -> None:
        jobs = list(handed_in(self._load))
        pause = self._load.seconds * CHUNK / max(1, len(jobs))
        try:
            for start in range(0, len(jobs), CHUNK):
                asyncio.run(self._submit(jobs[start : start + CHUNK]))
                time.sleep(pause)
        except Exception as failure:  # noqa: BLE001  a run whose load failed must not pass
            self.failures.append(f"the client: {failure!r}")

    async def _submit(self, jobs: list[tuple[str, int]]) -> None:
        deadline = time.monotonic() + 120
        while True:
            try:
                async with Client(self._settings) as client:
                    given = [Submission(Sent(seq=number), key=key) for key, number in jobs]
                    assert len({one async for one in client.submit_many(given)}) == len(jobs)
                return
            except Unreachable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)
