"""What becomes of a registry's odd answers: credentials refused, pages of a proxy, other services at the address, silence."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import SecretStr

from farandole.contracts import codec
from farandole.contracts.registry import client as registry_client
from farandole.contracts.registry import registry
from farandole.contracts.registry.registry import Registry
from farandole.errors import ConfigurationError, Unreachable
from farandole.event import Event
from farandole.settings import Settings

SCHEMA = {"type": "record", "name": "jobs.Submitted", "fields": []}
PAGE = (b"<html>please sign in</html>", "text/html")


def registry_at(url: str) -> Registry:
    return Registry(Settings().model_copy(update={"schema_registry_url": SecretStr(url)}))


@contextmanager
def answering(
    status: int,
    body: bytes = b"",
    kind: str = "application/json",
    asked: list[str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """The address of a server that gives every request this answer; `asked` gets their paths."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if asked is not None:
                asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.do_POST()

        def do_PUT(self) -> None:
            self.do_POST()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


CALLS: list[Callable[[Registry], object]] = [
    lambda found: found.schema(7),
    lambda found: found.register("jobs.submitted-value", SCHEMA),
    lambda found: found.find("jobs.submitted-value", SCHEMA),
]


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("call", CALLS)
def test_refused_credentials_name_the_setting_and_not_the_password(
    status: int, call: Callable[[Registry], object], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with answering(status, *PAGE) as address, pytest.raises(ConfigurationError) as error:
        call(registry_at(f"http://team:s3cr%40t@{address}"))
    assert "SCHEMA_REGISTRY_URL" in str(error.value)
    assert f"http://{address}" in str(error.value)
    said = f"{error.value} {caplog.text}"
    assert "s3cr" not in said
    assert "team" not in said


@pytest.mark.parametrize(
    ("status", "body"), [(500, PAGE), (502, (b"", "text/plain")), (429, (b"[]", "application/json"))]
)
@pytest.mark.parametrize("call", CALLS)
def test_a_registry_that_is_not_well_is_unreachable(
    status: int, body: tuple[bytes, str], call: Callable[[Registry], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_client, "_PAUSE_MS", 1)
    asked: list[str] = []
    with answering(status, *body, asked) as address, pytest.raises(Unreachable, match=f"HTTP {status}"):
        call(registry_at(f"http://{address}"))
    assert len(asked) == 2, "one more try; whoever asks waits the outage out"


OTHERS = [
    (200, *PAGE),
    (200, b"{}", "application/json"),
    (200, b"[1]", "application/json"),
    (302, b"", "text/html"),
    (404, b"404 page not found", "text/plain"),
    (404, b'{"error_code": 404, "message": "HTTP 404 Not Found"}', "application/json"),
]


@pytest.mark.parametrize("answer", OTHERS)
def test_what_is_no_registry_ends_a_start_and_is_waited_out_by_a_reader(answer: tuple[int, bytes, str]) -> None:
    """A page that stands in for a registry under repair must not make poison of good records."""
    with answering(*answer) as address:
        found = registry_at(f"http://{address}/base/")
        for call in CALLS[1:]:
            with pytest.raises(
                ConfigurationError, match=f"what answers at http://{address}/base is no Schema Registry"
            ):
                call(found)
        with pytest.raises(Unreachable, match="is no Schema Registry"):
            found.schema(7)


def test_silence_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_client, "_TIMEOUT", 0.05)
    monkeypatch.setattr(registry_client, "_PAUSE_MS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        for call in CALLS:
            with pytest.raises(Unreachable, match="does not answer"):
                call(registry_at(f"http://127.0.0.1:{server.getsockname()[1]}"))


def certified(folder: Path) -> ssl.SSLContext:
    """A server's TLS with a certificate for 127.0.0.1 that nobody else has signed; it lies in `folder`/own.pem."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry")])
    own = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    own = own.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
    own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    (folder / "own.pem").write_bytes(own.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "own.pem", folder / "key.pem")
    return context


def test_a_certificate_counts_where_the_machine_trusts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps({"schema": json.dumps(SCHEMA)}).encode()
    with answering(200, body, tls=certified(tmp_path)) as address:
        with pytest.raises(Unreachable, match="certificate"):
            registry_at(f"https://{address}").schema(7)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))
        assert registry_at(f"https://{address}").schema(7) == SCHEMA


def test_a_refusal_is_told_in_the_registrys_own_words_without_the_old_schema() -> None:
    message = (
        'Schema being registered is incompatible with an earlier schema for subject "jobs.submitted-value", details: '
        "[{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'urgency' at path '/fields/1' in the new "
        "schema has no default value and is missing in the old schema', additionalInfo:'urgency'}, {oldSchemaVersion: 1}, "
        '{oldSchema: \'{"type":"record","secret of others":1}\'}, {compatibility: \'FULL_TRANSITIVE\'}]'
    )
    assert registry_client._reason(message).endswith("additionalInfo:'urgency'}, {oldSchemaVersion: 1}")
    assert (
        registry_client._reason("io.a.b.RuleViolationException: Incompatible artifact: x") == "Incompatible artifact: x"
    )


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8081", "mock://registry", "http://", "http://me:s3cret@host:port", "http://[::1"]
)
def test_a_wrong_address_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^SCHEMA_REGISTRY_URL: expected http://host:port") as error:
        registry_at(url)
    assert "s3cret" not in str(error.value)


def test_without_the_client_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "farandole.contracts.registry.client")
    monkeypatch.delattr("farandole.contracts.registry.client")
    monkeypatch.setitem(sys.modules, "confluent_kafka.schema_registry", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'farandole\[registry\]'"):
        registry_at("http://127.0.0.1:1")


def test_the_client_is_loaded_only_when_a_registry_is_made() -> None:
    code = "import sys, farandole.contracts.registry.registry; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "'farandole.contracts.registry.registry'" in loaded
    assert not [name for name in ("confluent_kafka.schema_registry", "httpx2", "authlib") if f"'{name}'" in loaded]


@pytest.mark.parametrize(
    ("subjects", "subject"),
    [("topic", "ns.orders.paid-value"), ("record", "acme.Paid"), ("topic-record", "ns.orders.paid-acme.Paid")],
)
def test_a_subject_is_named_as_the_setting_says(subjects: str, subject: str) -> None:
    assert registry.subject(Settings.model_validate({"subjects": subjects}), "ns.orders.paid", "acme.Paid") == subject


class Paid(Event, topic="orders.all"):
    """Somebody paid."""


class Sent(Event, topic="orders.all"):
    """Something was sent."""


def test_two_event_types_of_one_topic_need_subjects_that_tell_them_apart() -> None:
    contracts = [codec.contract(event, "orders") for event in (Paid, Sent, Paid)]
    with pytest.raises(
        ConfigurationError, match=r"Paid and .*Sent lie on one topic, ns\.orders\.all.* FARANDOLE_SUBJECTS"
    ):
        registry.check_subjects(Settings(namespace="ns"), contracts)
    for subjects in ("record", "topic-record"):
        registry.check_subjects(Settings.model_validate({"subjects": subjects}), contracts)
