"""As many mails as a test wants: those of examples/inbox.jsonl over and over, each time another job."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from schemas.jobs import Submitted
from tests.commands import ROOT


def mails() -> Iterator[tuple[str, Submitted]]:
    """(key, mail) pairs without end."""
    rows = [json.loads(line) for line in (ROOT / "examples/inbox.jsonl").open(encoding="utf-8")]
    for number, row in enumerate(itertools.cycle(rows)):
        yield f"mail-{number}", Submitted.model_validate(row | {"message_id": f"{number}@example.com"})
