"""What a person does about steps: farandole's commands, and a redrive that is killed before it has given back."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from farandole import ids, redrive
from farandole.dead import Chosen
from farandole.settings import load_settings
from tests.commands import running, typed
from tests.eventually import eventually
from tests.integration.steps.conftest import Post


class Person:
    """At a terminal, with the projector at work."""

    def __init__(self, post: Post) -> None:
        self.post = post

    @contextmanager
    def attending(self) -> Iterator[None]:
        with running(self.post.settings, self.post.folder / "projector.log", "projector") as projector:
            projector.said("projector topics=")
            yield

    def types(self, *words: str, code: int = 0) -> str:
        """What a command says, on both streams."""
        done = typed(self.post.settings, *words, COLUMNS="160")
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *words: str, code: int = 0) -> Any:
        done = typed(self.post.settings, *words, "--json")
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def letters(self, number: int) -> None:
        """Wait until the projection knows so many open ones."""
        eventually(lambda: len(self.json("dead", "list")["letters"]) == number, f"{number} dead letters")


def job(word: str) -> str:
    return str(ids.trace_id_of_key("jobs", word))


class Stuck:
    """A producer whose transaction never begins."""

    def __init__(self, producer: Any) -> None:
        self.producer = producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.producer, name)

    def begin_transaction(self) -> None:
        print("standing still", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    with redrive.answering(load_settings()) as answers:
        answers._producer = Stuck(answers._producer)  # type: ignore[assignment]
        list(answers.redrive(answers.open(Chosen()), forget=sys.argv[1:]))
