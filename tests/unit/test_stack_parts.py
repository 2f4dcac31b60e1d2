"""The pure parts of the local stack: marks, stack.json, logs, ports, the lock of jars."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from farandole.errors import ExitCode, FarandoleError
from farandole.stack import faults, jars, places, ports, process, state
from farandole.stack.state import Owner, ServiceState, State
from farandole.stack.status import Condition, Endpoints, ServiceStatus, Status


def test_the_mark_is_the_folders_own(tmp_path: Path) -> None:
    # Two checkouts never share a mark, two names of one folder always do
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert process.mark(tmp_path / "one", "kafka") != process.mark(tmp_path / "two", "kafka")
    assert process.mark(tmp_path / "one", "kafka") != process.mark(tmp_path / "one", "postgres")
    assert process.mark(tmp_path / "link", "kafka") == process.mark(tmp_path / "one", "kafka")


def test_a_mark_is_short_enough_for_the_name_of_a_postgres_cluster(tmp_path: Path) -> None:
    assert len(process.mark(tmp_path, "postgres")) < 64


def test_a_process_is_found_by_its_mark_and_no_other_is(tmp_path: Path) -> None:
    # Given a process that carries a mark
    word = process.mark(tmp_path, "test")
    command = [sys.executable, "-c", "print(flush=True); input()", word]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline() == b"\n"
        # Then it is found by it, our own is not, and the end of the child is seen
        assert [one.pid for one in process.find(word)] == [child.pid]
        assert process.marked(os.getpid(), word) is None
        process.kill(word)
        assert process.find(word) == []


def test_the_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = State(ServiceState(1, "4.2.2", 2, 3.5), ServiceState(4, "18.6"), 5, True, Owner(6, 7.5, wipe=True))
    state.save(tmp_path, written)
    assert state.load(tmp_path) == written
    assert written.ports == {1, 4, 5}
    assert (tmp_path / state.FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"kafka": 1}', "null"])
def test_a_state_that_cannot_be_read_is_an_empty_one(tmp_path: Path, content: str) -> None:
    (tmp_path / state.FILE).write_text(content)
    assert state.load(tmp_path) == State()


def test_a_full_disk_is_a_sentence_and_other_faults_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(FarandoleError, match="the disk is full") as caught, faults.watching_the_disk(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.exit_code is ExitCode.DISK_FULL
    with pytest.raises(PermissionError), faults.watching_the_disk(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied")


def test_a_service_that_failed_for_want_of_space_is_a_full_disk(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("java.io.IOException: No space left on device\n")
    assert faults.service_failed("Kafka", "ended", {log: 0}, tmp_path).exit_code is ExitCode.DISK_FULL
    # and what an earlier run said counts no more
    since = {log: log.stat().st_size}
    assert faults.service_failed("Kafka", "ended", since, tmp_path).exit_code is ExitCode.STACK_FAILED


def test_the_end_of_a_log_begins_with_its_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("INFO begin\nERROR the reason\n\tat some.Class\n" + "INFO closing\n" * 30)
    assert faults.tail(log).splitlines()[:2] == ["ERROR the reason", "\tat some.Class"]
    log.write_text("one\ntwo\nthree\n")
    assert faults.tail(log, lines=2) == "two\nthree"
    assert faults.tail(tmp_path / "absent") == ""


def test_a_port_somebody_listens_on_is_not_free() -> None:
    with socket.socket() as listener:
        listener.bind((ports.LOOPBACK, 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert not ports.free(port)
        with pytest.raises(FarandoleError, match=f"port {port}") as caught:
            ports.require(port, "Kafka", "--kafka-port")
    assert caught.value.exit_code is ExitCode.PORT_TAKEN
    ports.await_free({port})
    assert ports.choose(set()) in ports.RANGE


def test_the_lock_names_kafka_and_a_digest_for_every_jar() -> None:
    locked = jars.locked()
    assert f"kafka_2.13:{jars.KAFKA}" in {f"{jar.artifact}:{jar.version}" for jar in locked}
    assert f"kafka-clients:{jars.KAFKA}" in {f"{jar.artifact}:{jar.version}" for jar in locked}
    assert all(len(jar.sha256) == 64 for jar in locked)
    assert len({(jar.group, jar.artifact) for jar in locked}) == len(locked)
    assert locked[0].path == Path(f"org/apache/kafka/kafka_2.13/{jars.KAFKA}/kafka_2.13-{jars.KAFKA}.jar")


def test_the_cache_is_where_the_system_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert places.cache_folder() == tmp_path / "farandole"


def test_the_password_is_in_no_repr_and_addresses_are_null_while_down() -> None:
    assert "secret" not in repr(Endpoints("127.0.0.1:1", "postgresql://u:secret@h/d"))
    one = ServiceStatus("kafka", Condition.CRASHED, None, 1, "4.2.2", 0, 0, None, "log")
    shown = json.loads(json.dumps(Status((one,), None).as_dict()))
    assert shown["services"]["kafka"]["state"] == "crashed"
    assert shown["kafka_bootstrap_servers"] is None and shown["database_url"] is None


def test_the_commands_import_no_vendor_library() -> None:
    program = (
        "import sys, farandole.cli.stack\n"
        "print([name for name in ('psutil', 'filelock', 'jgo', 'psycopg', 'confluent_kafka') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
