"""The fake server as a process: prints its URL, and answers `GET /_calls` with what it was asked, until it is stopped."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys

from farandole.models.configured import Limit
from farandole.testing.messages.behaviours import Answer, Slow
from farandole.testing.messages.fake import FakeMessages, Rule


def main() -> None:
    """`python -m farandole.testing.messages [MODULE:FUNCTION]`; the function is a rule."""
    given = _parser().parse_args()
    # Before the server's thread begins: a thread inherits what is blocked, so that `sigwait` gets the signals.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    limits = {name: getattr(given, name) for name in Limit.model_fields}
    enforce = Limit(**limits) if any(limits.values()) else None
    with FakeMessages(given.port, enforce=enforce) as fake:
        if given.rule:
            fake.rule(given.rule)
        if given.seconds:
            fake.reply(Slow(given.seconds, Answer()))
        sys.stdout.write(f"{fake.url}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m farandole.testing.messages", description="a fake Messages API")
    parser.add_argument("rule", nargs="?", type=_rule, metavar="MODULE:FUNCTION", help="decides what a request gets")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--seconds", type=float, default=0, help="that a call takes without a rule")
    for name, field in Limit.model_fields.items():
        said = f"refuse more of one model: {field.description}"
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=said)
    return parser


def _rule(told: str) -> Rule:
    module, _, name = told.partition(":")
    try:
        found: Rule = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise argparse.ArgumentTypeError(f"{told}: {error}") from error
    return found


if __name__ == "__main__":
    main()
