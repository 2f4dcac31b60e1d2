"""What the doctor says of an address at which no Schema Registry is; the stack's tests have one that is."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from farandole.checks.registry import check_registry, look_at
from farandole.examination import Examination
from farandole.settings import load_settings
from farandole.stack import ports


@contextlib.contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str | None]]]:
    """Something that answers whatever it is asked in one way: its address, and the credentials it was given."""
    given: list[str | None] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given.append(self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer((ports.LOOPBACK, 0), Answer) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"{ports.LOOPBACK}:{server.server_port}", given
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "body", "said", "advice"),
    [
        (401, b"{}", "refuses to list its subjects (401)", "user:password@"),
        (404, b"not here", "answers 404", "/apis/ccompat/v7"),
        (200, b"<html>please log in</html>", "is no Schema Registry", "/apis/ccompat/v7"),
        (200, b'{"subjects": []}', "is no Schema Registry", "/apis/ccompat/v7"),
    ],
)
def test_what_is_no_registry_is_named_with_what_was_expected(status: int, body: bytes, said: str, advice: str) -> None:
    with answering(status, body) as (address, _):
        finding = look_at(f"http://{address}")
    assert (finding.check, finding.state) == ("registry", "problem")
    assert address in finding.found and said in finding.found, finding
    assert "SCHEMA_REGISTRY_URL" in finding.advice and advice in finding.advice


def test_a_registry_that_is_down_is_named_with_the_command_that_starts_one() -> None:
    port = ports.choose(set())
    finding = look_at(f"http://127.0.0.1:{port}/apis/ccompat/v7")
    assert finding.state == "problem"
    assert f"http://127.0.0.1:{port}/apis/ccompat/v7 does not answer" in finding.found
    assert "farandole up --registry" in finding.advice


@pytest.mark.parametrize("address", ["localhost:8081", "kafka://broker:9092", "http://", "http://me:pass#word@host"])
def test_what_is_no_address_is_said(address: str) -> None:
    finding = look_at(address)
    assert finding.state == "problem" and "its address is none" in finding.found
    assert "pass" not in finding.found


def test_user_and_password_are_sent_and_never_shown() -> None:
    with answering(200, b"[]") as (address, given):
        finding = look_at(f"http://me:s%40cret@{address}")
        refused = look_at(f"http://me:s%40cret@127.0.0.1:{ports.choose(set())}")
    assert given == ["Basic bWU6c0BjcmV0"]  # me:s@cret
    assert finding.state == "ok"
    assert "cret" not in repr(finding) + repr(refused) and "me:" not in repr(finding) + repr(refused)


def test_every_address_of_a_list_is_asked_and_without_one_nothing_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SCHEMA_REGISTRY_URL", raising=False)
    monkeypatch.chdir(tmp_path)  # the local stack of this checkout may run a registry
    assert list(check_registry(Examination(settings=load_settings()))) == []
    with answering(200, b"[]") as (one, _), answering(200, b'["a-value"]') as (other, _):
        settings = load_settings(schema_registry_url=f"http://{one}, http://{other}")
        found = [finding.found for finding in check_registry(Examination(settings=settings))]
    assert found == [f"http://{one}, 0 subjects", f"http://{other}, 1 subjects"]
