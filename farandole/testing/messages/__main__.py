"""The fake server as a process: prints its URL, and answers `GET /_calls` with what it was asked, until it is stopped."""

from __future__ import annotations

import importlib
import signal
import sys

from farandole.testing.messages.fake import FakeMessages


def main() -> None:
    """`python -m farandole.testing.messages [MODULE:FUNCTION]`; the function is a rule."""
    with FakeMessages() as fake:
        if len(sys.argv) > 1:
            module, _, name = sys.argv[1].partition(":")
            fake.rule(getattr(importlib.import_module(module), name))
        sys.stdout.write(f"{fake.url}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
