"""Apache Avro's own Java library as a second judge: one JVM of the local stack's Java reads, writes and compares for us.

The program is JavaAvro.java beside this file, compiled when it starts; the jars are those of avro.lock.
"""

from __future__ import annotations

import base64
import json
import select
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from farandole.stack import jars, java, maven, places

HERE = Path(__file__).parent
#: Seconds. Compiling takes two and an answer a millisecond; this is for a machine that does much else.
PATIENCE = 120


class JavaAvroError(Exception):
    """Java's library refused a schema, bytes or a value; its own words."""


class JavaAvro:
    """The library behind a pipe: `with JavaAvro() as java: java.read(schema, value)`. One thread at a time.

    Schemas are JSON-ready dicts or lists; what Java refuses raises JavaAvroError. Values are in Avro's JSON encoding, so
    a branch of a union is `{"its type": value}` and bytes are a string of the characters 0 to 255.
    """

    def __enter__(self) -> Self:
        runtime = java.find()
        lock = maven.parse((HERE / "avro.lock").read_text(encoding="utf-8"))
        cache = places.cache_folder()
        path = ":".join(map(str, jars.fetch_all(lock, "Avro for Java", cache, places.repository(), print)))
        self._folder = tempfile.TemporaryDirectory(prefix="farandole-java-avro-")
        compiled = Path(self._folder.name)
        _compile(runtime.command, path, compiled)
        self._errors = (compiled / "stderr").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [runtime.command, *_QUICKLY, "-classpath", f"{compiled}:{path}", "JavaAvro"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, encoding="utf-8",
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()
        self._folder.cleanup()

    def read(self, schema: Any, value: bytes, reader: Any = None) -> tuple[Any, bytes]:
        """What single-object encoded bytes of `schema` say, resolved to `reader` if given; and the schema's fingerprint.

        The fingerprint is CRC-64-AVRO, 8 bytes as on the wire.
        """
        more = {} if reader is None else {"reader": json.dumps(reader)}
        reply = self._ask("read", schema, value=base64.b64encode(value).decode(), **more)
        return json.loads(reply["json"]), bytes.fromhex(reply["fingerprint"])

    def write(self, schema: Any, value: Any) -> bytes:
        """Single-object encoded bytes of a value in Avro's JSON encoding."""
        return base64.b64decode(self._ask("write", schema, json=json.dumps(value))["value"])

    def fingerprint(self, schema: Any) -> bytes:
        """CRC-64-AVRO, 8 bytes as on the wire."""
        return bytes.fromhex(self._ask("fingerprint", schema)["fingerprint"])

    def compatible(self, reader: Any, writer: Any) -> list[str]:
        """Why what `writer` wrote cannot be read with `reader`, aliases considered; empty when it can."""
        reasons = self._ask("compatible", reader, writer=json.dumps(writer))["reasons"]
        return [str(reason) for reason in reasons]

    def _ask(self, what: str, schema: Any, **more: str) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        request = {"do": what, "schema": json.dumps(schema)} | more
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            raise AssertionError(f"the Java program is gone or stuck at {what}: {self._said()}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise JavaAvroError(reply["error"])
        return reply

    def _said(self) -> str:
        self._errors.seek(0)
        return self._errors.read() or "it said nothing"


#: A program that lives for seconds: the quick compiler alone, a small heap, one thread to collect it.
_QUICKLY = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")


def _compile(command: Path, path: str, into: Path) -> None:
    options = ["-17", "-proc:none", "-nowarn", "-classpath", path, "-d", str(into), str(HERE / "JavaAvro.java")]
    compiler = [str(command), *_QUICKLY, "-classpath", path, "org.eclipse.jdt.internal.compiler.batch.Main", *options]
    said = subprocess.run(compiler, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if said.returncode:
        raise AssertionError(f"JavaAvro.java does not compile:\n{said.stdout}{said.stderr}")
