"""`farandole config` says where each value comes from, and never a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from farandole.cli import app
from farandole.errors import ConfigurationError
from farandole.origins import masked
from farandole.settings import load_settings


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.farandole]\nflow = "orders"\npartitions = 3\nprices = "prices.toml"\n[tool.farandole.demo]\ninput = "x"\n'
        "[tool.farandole.budgets]\njob = 0.05\nagents = { act = 5 }\n[tool.farandole.models]\ncheap = 'a'\nbest = 'b'\n"
    )
    (tmp_path / ".farandole").mkdir()
    addresses = {"kafka_bootstrap_servers": "127.0.0.1:1", "database_url": "postgresql://u:hunter2@127.0.0.1:2/d"}
    (tmp_path / ".farandole" / "endpoints.json").write_text(json.dumps(addresses))
    for name in ("KAFKA_BOOTSTRAP_SERVERS", "DATABASE_URL", "SCHEMA_REGISTRY_URL", "FARANDOLE_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FARANDOLE_BATCH", "77")
    monkeypatch.setenv("FARANDOLE_MODELS", '{"cheap": "c"}')
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-hunter2")
    monkeypatch.setenv("SMTP_URL", "smtp://u:hunter2@127.0.0.1:25")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["config", "--json"])
    assert result.exit_code == 0, result.output
    assert "hunter2" not in result.output
    return {row["variable"]: row for row in json.loads(result.stdout)}


@pytest.mark.parametrize(
    ("variable", "value", "origin"),
    [
        ("FARANDOLE_FLOW", "orders", "pyproject"),
        ("FARANDOLE_PARTITIONS", "3", "pyproject"),
        ("FARANDOLE_BATCH", "77", "environment"),
        ("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1", "stack"),
        ("DATABASE_URL", "postgresql://u:***@127.0.0.1:2/d", "stack"),
        ("FARANDOLE_CLAIMS", "true", "default"),
        ("SCHEMA_REGISTRY_URL", "", "default"),
        ("ANTHROPIC_API_KEY", "***", "environment"),
        ("SMTP_URL", "smtp://u:***@127.0.0.1:25", "environment"),
        ("FARANDOLE_BUDGETS", '{"job": "0.05", "agents": {"act": "5"}}', "pyproject"),
        ("FARANDOLE_LIMITS", "", "default"),
        ("FARANDOLE_MODELS", '{"cheap": "c"}', "environment"),  # all of it: not mixed with the table
    ],
)
def test_each_setting_shows_its_value_and_its_origin(
    shown: dict[str, dict[str, str]], variable: str, value: str, origin: str
) -> None:
    assert (shown[variable]["value"], shown[variable]["origin"]) == (value, origin)


def test_every_setting_has_a_meaning(shown: dict[str, dict[str, str]]) -> None:
    assert [row for row in shown.values() if not row["meaning"]] == []


@pytest.mark.parametrize(
    "secret",
    [
        "postgresql://ann:secret@db/app", "postgresql://db/app?password=secret&user=ann", "host=db password=secret",
        "postgresql://ann:sec@ret@secret@db/app#secret", "postgresql://[secret", "http://:secret@x",
    ],
)  # fmt: skip
def test_no_form_of_a_url_shows_its_secret(secret: str) -> None:
    assert "secret" not in masked(secret)


def test_the_path_of_the_prices_begins_at_the_project(shown: dict[str, dict[str, str]], tmp_path: Path) -> None:
    assert shown["FARANDOLE_PRICES"]["value"] == str(tmp_path / "prices.toml")


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("FARANDOLE_BUDGETS", '{"day": 2', "FARANDOLE_BUDGETS: expected a table of [tool.farandole.budgets] as a JSON object"),
        ("farandole_limits", "x", "FARANDOLE_LIMITS: expected a table of [tool.farandole.limits] as a JSON object"),
        ("FARANDOLE_BUDGETS", "5", "FARANDOLE_BUDGETS: Input should be a valid dictionary"),
        ("FARANDOLE_BUDGETS", '{"week": 1}', "FARANDOLE_BUDGETS.week: unknown setting in FARANDOLE_BUDGETS"),
        ("FARANDOLE_BUDGETS", '{"day": NaN}', "FARANDOLE_BUDGETS.day: expected dollars, 0 or more (given: nan)"),
        ("FARANDOLE_BUDGETS", '{"agents": {"act": true}}', "FARANDOLE_BUDGETS.agents.act: expected dollars, such as 2.5"),
        ("FARANDOLE_LIMITS", '{"m": {"requests": 0}}', "FARANDOLE_LIMITS.m.requests: Input should be greater than"),
        ("FARANDOLE_MODELS", '{"cheap": 3}', "FARANDOLE_MODELS.cheap: Input should be a valid string"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_named_with_what_was_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert str(caught.value).startswith(said)


def test_a_wrong_table_of_the_project_is_named_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.farandole.budgets]\nweek = 1\nday = -2\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert str(caught.value) == (
        "FARANDOLE_BUDGETS.day: expected dollars, 0 or more (given: -2); "
        "FARANDOLE_BUDGETS.week: unknown setting in FARANDOLE_BUDGETS"
    )
