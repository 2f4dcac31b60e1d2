"""Somebody who types README.md in, and docs/operations.md after it, at a terminal of a copy of the project.

How a block is read:

- ```console: lines after `$ ` are run by a shell, the lines below are their output. `…` stands for anything in a line, and
  alone on a line for any lines. Commands that run until they are stopped (`LASTING`) go on until the end.
- ```python: a file, named by its first line (`# agents/label.py`), written into the copy of the project.
- ```sql: a query; its answer is the ```text block that follows.

The fences are found by markdown-it-py, which rich brings along. Packages that test Markdown (sybil, pytest-markdown-docs,
pytest-examples) run Python blocks; a session of commands, some of which stay running, and SQL would be ours all the same.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from markdown_it import MarkdownIt

from farandole import postgres
from farandole.settings import Settings
from farandole.testing.flow import environment
from tests.eventually import eventually

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

#: Read in this order: the second one goes on where the first one ends.
DOCUMENTS = ("README.md", "docs/operations.md")

#: Commands that run until they are told to stop.
LASTING = re.compile("farandole (run|dev|projector$)|env ANTHROPIC|python -m farandole[.]testing")
#: Of a server that a reader starts by hand; here it is one that is free.
PORT = "8765"
#: Seconds for a command that ends by itself, and for what a lasting one says first.
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a document; `at` is its place there, for people."""

    language: str
    text: str
    document: str
    line: int

    @property
    def at(self) -> str:
        return f"{self.document}:{self.line}"


@dataclass(frozen=True, slots=True)
class Typed:
    """A command of a console block, and the output that is shown below it."""

    command: str
    output: str
    document: str
    line: int

    @property
    def at(self) -> str:
        return f"{self.document}:{self.line}"


def blocks() -> list[Block]:
    """All of them, in the order in which they are read."""
    return [block for name in DOCUMENTS for block in blocks_of(name)]


def blocks_of(name: str) -> list[Block]:
    """Those of one document, a path below the root."""
    tokens = MarkdownIt().parse((ROOT / name).read_text(encoding="utf-8"))
    fences = [token for token in tokens if token.type == "fence"]
    return [Block(token.info, token.content, name, (token.map or [0])[0] + 1) for token in fences]


def typed(block: Block) -> list[Typed]:
    """The commands of a console block, in order."""
    found: list[Typed] = []
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            found.append(Typed(line[2:], "", block.document, number))
        else:
            last = found[-1]
            found[-1] = replace(last, output=f"{last.output}{line}\n")
    return found


def normal(text: str) -> str:
    """One space where there are several, none at the ends of lines, no empty lines at the ends."""
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def pattern(shown: str) -> str:
    """A regular expression of the output that is shown; `…` is anything."""
    return "".join(
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*?") + "\n"
        for line in normal(shown).split("\n")
    )


@dataclass
class Reader:
    """Somebody at a terminal, in a copy of the project, with the README beside."""

    home: Path
    settings: Settings
    stack: ExitStack
    port: str = field(default_factory=lambda: str(free_port()))

    @property
    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, **environment(self.settings), "PATH": path, "COLUMNS": "110", "PYTHONUNBUFFERED": "1"}

    def shown(self, output: str) -> str:
        """Output as it is without the test's namespace."""
        name = self.settings.namespace
        return normal(
            output.replace(f":{self.port}", f":{PORT}")
            .replace(f"{name}_farandole", "farandole")
            .replace(f"{name}.", "")
            .replace(rf"{name}\.", "")
        )

    def does(self, block: Block) -> None:
        """What a reader does with a block; `mermaid` is for looking at."""
        if block.language == "console":
            for step in typed(block):
                self.types(step)
        elif block.language in ("python", "markdown"):
            self.writes(block)

    def writes(self, block: Block) -> None:
        """The first line names the file. A bare client's topics are those of the namespace."""
        name = re.match(r"(?:# (?=\S+\.py)|<!-- (?=\S+\.md -->))(\S+)(?: -->)?\n", block.text)
        assert name, f"{block.at}: the first line of a block is `# FILE.py` or `<!-- FILE.md -->`"
        text = block.text if block.language == "python" else block.text[name.end() :]
        if "confluent_kafka" in text:
            text = re.sub(r'produce\("', f'produce("{self.settings.namespace}.', text)
        path = self.home / name[1]
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def types(self, step: Typed) -> None:
        command = step.command.replace(PORT, self.port)
        if command.startswith("docker compose up"):
            return  # needs an engine; tests/unit/test_compose.py looks at the file
        if command.startswith("docker compose exec"):
            command = inside(command)
        elif command.startswith("make "):
            command = made(command.split()[1])
        run = self.starts if LASTING.match(command) else self.runs
        run(command, step)

    def runs(self, command: str, step: Typed) -> None:
        """A command that ends by itself, well."""
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        where = f"{step.at} $ {step.command}"
        assert ended.returncode == 0, f"{where}\nended with {ended.returncode}:\n{ended.stdout}"
        output = self.shown(ended.stdout) + "\n"
        fits = re.fullmatch(pattern(step.output), output) is not None
        assert fits, f"{where}\nshows:\n{step.output}\nbut says:\n{output}"

    def starts(self, command: str, step: Typed) -> None:
        """A command that goes on; the reader looks on until it has said what is shown."""
        log = self.home / f"{Path(step.document).stem}-line-{step.line}.log"
        leash = (
            "" if command == "farandole dev" or "testing.messages" in command else " --leash"
        )  # ends with this process, however that ends
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}{leash}"],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.stack.callback(stop, process)

        def said() -> bool:
            output = self.shown(log.read_text(encoding="utf-8", errors="replace")) + "\n"
            assert process.poll() is None, f"{step.at} ended with {process.returncode}:\n{output}"
            return re.match(pattern(step.output), output) is not None

        eventually(said, f"{step.at} $ {step.command}\nshows:\n{step.output}; see {log}", PATIENCE)

    def asks(self, query: Block, answer: Block) -> None:
        """A query, again until the projector has folded what it is about."""

        shown = re.sub(r"^[-+]+\n", "", answer.text, flags=re.MULTILINE)  # the line under the columns' names
        seen = ""

        def look() -> bool:
            nonlocal seen
            with postgres.connect(self.settings) as connection:
                cursor = connection.execute(postgres.script(query.text))
                seen = table([column.name for column in cursor.description or ()], cursor.fetchall())
            return re.fullmatch(pattern(shown), normal(seen) + "\n") is not None

        try:
            eventually(look, "the answer that is shown", 60.0)
        except AssertionError as late:
            raise AssertionError(f"{query.at} shows:\n{shown}\nbut the answer is:\n{seen}") from late


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """An answer as psql shows it, but for spaces."""
    lines = [columns, *([cell(value) for value in row] for row in rows)]
    return "\n".join(" | ".join(line) for line in lines)


def cell(value: object) -> str:
    """A value as psql shows it."""
    return {None: "", True: "t", False: "f"}[value] if value is None or isinstance(value, bool) else str(value)


def inside(command: str) -> str:
    """What a command in a container runs there; the container must be one of docker-compose.yml."""
    words = command.split(maxsplit=3)[3].removeprefix("-T ")
    service, _, rest = words.partition(" ")
    assert service in yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    return rest


def made(target: str) -> str:
    """The recipe of a target of the Makefile, without what it needs first."""
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe, f"the Makefile has no target {target}"
    return recipe[1].strip().replace("$(BIN)/", "")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stop(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM; a process that does not drain is killed, with what it started."""
    process.terminate()
    try:
        process.wait(45)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
