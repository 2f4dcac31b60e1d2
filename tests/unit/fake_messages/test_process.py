"""FakeMessages in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from farandole.testing.messages import (
    Answer,
    Behaviour,
    Cut,
    Garbage,
    Hang,
    MidStream,
    Slow,
    rate_limited,
)
from farandole.testing.messages.described import from_json, to_json
from tests.unit.fake_messages.asking import ASKED, GOOD, HAIKU

BEHAVIOURS = [
    Answer({"a": 1}, thinking="t", tool_use=("x", {"b": 2}), usage={"input_tokens": 1}, more=("m",)),
    rate_limited(3),
    MidStream("api_error", 2),
    Cut("headers"),
    Slow(0.5, Slow(1, Hang(3))),
    Garbage(),
]


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: type(one).__name__)
def test_a_behaviour_survives_json(behaviour: Behaviour) -> None:
    assert from_json(json.loads(json.dumps(to_json(behaviour)))) == behaviour


@pytest.mark.parametrize("told", [None, {}, {"kind": "Nobody"}, {"kind": "Slow", "second": 1}])
def test_what_is_no_behaviour_is_told(told: Any) -> None:
    with pytest.raises(ValueError):
        from_json(told)


def fetch(url: str, told: Any = None, headers: dict[str, str] | None = None) -> Any:
    data = None if told is None else json.dumps(told).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers or {}), timeout=10) as response:
        return json.load(response)


def rule_of_the_process(body: dict[str, Any]) -> Behaviour | None:
    return Answer("by the rule") if body["max_tokens"] == 7 else None


def test_a_fake_in_a_process_of_its_own_is_scripted_and_counted_over_http() -> None:
    command = [
        sys.executable,
        "-m",
        "farandole.testing.messages",
        "--requests",
        "50",
        f"{__name__}:rule_of_the_process",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        try:
            headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "idempotency-key": "fd-9"}
            assert fetch(f"{url}/_script", [to_json(GOOD)]) == {"scripted": 1}
            assert fetch(f"{url}/v1/messages", ASKED, headers)["content"][0]["text"] == "good"
            assert (
                fetch(f"{url}/v1/messages", {**ASKED, "max_tokens": 7}, headers)["content"][0]["text"] == "by the rule"
            )
            with pytest.raises(urllib.error.HTTPError, match="400"):
                fetch(f"{url}/_script", [{"kind": "Nobody"}])
            calls = fetch(f"{url}/_calls")
            assert [call["headers"]["idempotency-key"] for call in calls] == ["fd-9", "fd-9"]
            assert calls[0]["body"] == ASKED
            assert fetch(f"{url}/_summary")["models"][HAIKU]["calls"] == 2
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
