"""`farandole config` says where each value comes from, and never a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from farandole.cli import app
from farandole.origins import masked


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.farandole]\nflow = "orders"\npartitions = 3\n[tool.farandole.demo]\ninput = "x"\n'
    )
    (tmp_path / ".farandole").mkdir()
    addresses = {"kafka_bootstrap_servers": "127.0.0.1:1", "database_url": "postgresql://u:hunter2@127.0.0.1:2/d"}
    (tmp_path / ".farandole" / "endpoints.json").write_text(json.dumps(addresses))
    for name in ("KAFKA_BOOTSTRAP_SERVERS", "DATABASE_URL", "FARANDOLE_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FARANDOLE_BATCH", "77")
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
