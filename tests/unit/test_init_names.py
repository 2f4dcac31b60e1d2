"""What a new project may be called, and where its farandole comes from."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from farandole import scaffold
from farandole.errors import ConfigurationError, ExitCode, FarandoleError
from farandole.scaffold import flow_name, source_of_farandole


@pytest.mark.parametrize(("name", "flow"), [("my-flow", "my_flow"), ("Orders2", "orders2"), ("a", "a"), ("x_y", "x_y")])
def test_a_project_s_name_gives_its_flow(name: str, flow: str) -> None:
    assert flow_name(name) == flow


@pytest.mark.parametrize("name", ["", "my flow", "1st", "-x", "naïve", "a" * 32, "a.b", "x;rm -rf", "..", "\x1b[31m"])
def test_an_odd_name_is_refused(name: str) -> None:
    with pytest.raises(FarandoleError, match="is no project name") as raised:
        flow_name(name)
    assert raised.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("name", ["farandole", "Sort", "decide"])
def test_a_name_that_would_mix_topics_is_refused(name: str) -> None:
    with pytest.raises(FarandoleError, match="topics would mix"):
        flow_name(name)


class Installed:
    """Stands for the installed distribution, with the origin that pip recorded."""

    version = "9.9"

    def __init__(self, origin: object) -> None:
        self.origin = origin

    def read_text(self, _name: str) -> str | None:
        return json.dumps(self.origin) if self.origin else None


def installed_from(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda _name: Installed(origin))


def test_from_an_index_this_very_version_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    installed_from(monkeypatch, None)
    assert source_of_farandole() == ("farandole[local,test]==9.9", None)


def test_from_a_local_wheel_that_wheel_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = tmp_path / "with space" / "farandole-9.9-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    installed_from(monkeypatch, {"url": wheel.as_uri(), "archive_info": {}})
    assert source_of_farandole()[1] == wheel


def test_a_wheel_that_is_gone_is_named_and_nothing_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed_from(monkeypatch, {"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}})
    with pytest.raises(ConfigurationError, match=r"gone\.whl"):
        scaffold.create(tmp_path / "my-flow")
    assert not (tmp_path / "my-flow").exists()


def test_from_version_control_the_same_commit_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = {"url": "https://example.com/f.git", "vcs_info": {"vcs": "git", "commit_id": "abc123"}}
    installed_from(monkeypatch, origin)
    assert source_of_farandole() == ("farandole[local,test] @ git+https://example.com/f.git@abc123", None)
