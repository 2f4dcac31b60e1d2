"""The processes of a run: workers and projectors that are killed, frozen and drained, and come back as under a supervisor."""

from __future__ import annotations

import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from farandole.errors import ExitCode
from farandole.settings import Settings
from tests.chaos.flow.ledger import FOLDER
from tests.chaos.schedule import PROJECTOR, Schedule
from tests.commands import ROOT, Command

FLOW = Path(__file__).parent / "flow"
#: Seconds before a member that ended by itself is started again.
_BACKOFF = 1.0
#: What a member says once it works.
_READY = ("ready agent=", "projector topics=")
#: What one says that was to drain while a service was away: what is not settled is read again.
_LEFT_IN_AN_OUTAGE = "asked to stop during an outage"


@dataclass(slots=True)
class Member:
    """A process that is to run, or an extra one that leaves for good."""

    name: str
    command: Command | None = None
    frozen: bool = False
    draining: bool = False
    again: float | None = None  #: when it is to be started (time.monotonic); None: not
    lives: int = 0
    logs: list[Path] = field(default_factory=list)

    @property
    def group(self) -> str:
        return self.name.rpartition("-")[0]


class Fleet:
    """All members. Only `tick` looks at what became of them, so one thread must drive it."""

    def __init__(self, settings: Settings, schedule: Schedule, folder: Path) -> None:
        self._settings = settings
        self._schedule = schedule
        self._folder = folder
        self.members = {name: Member(name) for name in schedule.members}
        self.kills = 0
        self.complaints: list[str] = []
        (folder / "ledger").mkdir()

    def start(self, name: str) -> None:
        member = self.members.setdefault(name, Member(name))
        member.again, member.frozen, member.draining = None, False, False
        member.lives += 1
        log = self._folder / f"{name}.{member.lives}.log"
        member.logs.append(log)
        rest = (
            ["run", str((FLOW / f"{member.group}.py").relative_to(ROOT))] if member.group != PROJECTOR else [PROJECTOR]
        )
        rest.append("--leash")  # it drains when this process, whose pipe its stdin is, is killed
        module = "farandole"
        if self._schedule.broken and self._schedule.broken[1] == member.group:
            module = "tests.chaos.broken"
            rest.insert(0, self._schedule.broken[0])
        more = self._schedule.settings | {FOLDER: str(self._folder / "ledger")}
        member.command = Command(self._settings, log, *rest, more=more, module=module, stdin=subprocess.PIPE)

    def busy(self, group: str) -> str:
        """The worker of a group that handled something last."""
        ledgers = {
            member.name: self._folder / "ledger" / f"{group}-{member.command.process.pid}.jsonl"
            for member in self.members.values()
            if member.command and member.group == group
        }
        written = {name: file.stat().st_mtime_ns for name, file in ledgers.items() if file.exists()}
        return max(written, key=lambda name: written[name], default=f"{group}-0")

    def kill(self, name: str, again: float) -> None:
        """kill -9; starts it again after `again` seconds, never when that is negative."""
        member = self.members.get(name)
        if member and member.command:
            member.command.kill()
            self.kills += 1
            member.command = None
            member.again = time.monotonic() + again if again >= 0 else None

    def freeze(self, name: str) -> None:
        member = self.members[name]
        if member.command:
            member.command.signal(signal.SIGSTOP)
            member.frozen = True

    def thaw_all(self) -> None:
        for name in self.members:
            self.thaw(name)

    def thaw(self, name: str) -> None:
        member = self.members[name]
        if member.command and member.frozen:
            member.command.signal(signal.SIGCONT)
        member.frozen = False

    def drain(self, name: str, again: float) -> None:
        """SIGTERM; `tick` starts it again after it has ended, never when `again` is negative."""
        member = self.members.get(name)
        if member and member.command and not member.frozen and not member.draining:  # a second one means: at once
            member.command.signal(signal.SIGTERM)
            member.draining = True
            member.again = time.monotonic() + again if again >= 0 else None

    def tick(self) -> None:
        """Notice who has ended, and start who is due."""
        for member in self.members.values():
            if member.command and (code := member.command.process.poll()) is not None:
                self._ended(member, member.command, code)
            if member.command is None and member.again is not None and time.monotonic() >= member.again:
                self.start(member.name)

    def _ended(self, member: Member, command: Command, code: int) -> None:
        member.command = None
        output = command.output()
        begun = any(word in output for word in _READY)
        # A service was away when it started: it says so and ends, and whoever started it tries again.
        away = code == ExitCode.UNREACHABLE and not begun
        if member.draining:
            early = code == -signal.SIGTERM and not begun
            if code != 0 and not (away or early or _LEFT_IN_AN_OUTAGE in output):
                self._complain(member, f"drained with {code}", output)
            return
        member.again = time.monotonic() + _BACKOFF
        if not away:
            self._complain(member, f"ended by itself with {code}", output)

    def _complain(self, member: Member, what: str, output: str) -> None:
        self.complaints.append(f"{member.name} {what} ({member.logs[-1].name}): …{output.strip()[-300:]}")

    def ready(self, seconds: float = 60) -> None:
        """Wait until all of them work."""
        for member in self.members.values():
            if member.command:
                member.command.said(_READY[member.group == PROJECTOR], seconds=seconds)

    def settled(self, seconds: float = 60) -> None:
        """Wait until every worker holds partitions."""
        for member in self.members.values():
            if member.command and member.group != PROJECTOR:
                member.command.said("assigned ", seconds=seconds)

    def make_whole(self) -> None:
        """The faults are over: who is frozen wakes, who is missing starts, extra members leave."""
        for member in list(self.members.values()):
            self.thaw(member.name)
            if member.name not in self._schedule.members:
                self.drain(member.name, -1)
            elif member.command is None and member.again is None:
                member.again = time.monotonic()
        self.tick()

    def end(self) -> None:
        """Drain all; kill what does not end, which is a complaint."""
        for member in self.members.values():
            self.thaw(member.name)
            self.drain(member.name, -1)
        deadline = time.monotonic() + 40
        for member in self.members.values():
            if member.command:
                try:
                    member.command.process.wait(max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    member.command.kill()
                    self._complain(member, "did not end within 40 s of SIGTERM", member.command.output())
                    member.command = None
            member.again = None
        self.tick()
