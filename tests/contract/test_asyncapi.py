"""The AsyncAPI document against the official JSON schemas, and that those would find something."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from jsonschema import Draft7Validator  # type: ignore[import-untyped]
from typer.testing import CliRunner

from farandole.cli import app
from tests.commands import ROOT
from tests.contract.official import schema


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        ended = CliRunner().invoke(app, ["graph", "--asyncapi", "--server", "production=kafka.example.com:9092"])
    assert ended.exit_code == 0, ended.output
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.fixture(scope="module")
def official() -> Draft7Validator:
    return Draft7Validator(schema("3.0.0"))


def test_the_document_of_this_project_is_as_the_official_schema_wants_it(
    document: dict[str, Any], official: Draft7Validator
) -> None:
    assert [error.message for error in official.iter_errors(document)] == []


def test_it_is_one_of_the_next_version_as_well(document: dict[str, Any]) -> None:
    assert Draft7Validator(schema("3.1.0")).is_valid(document | {"asyncapi": "3.1.0"})


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("channels", "jobs.submitted", "bindings", "kafka", "topicConfiguration", "cleanup.policy"), "delete"),
        (("channels", "jobs.submitted", "bindings", "kafka", "partitions"), "six"),
        (("operations", "classify.receive", "bindings", "kafka", "groupId"), ["classify"]),
        (("operations", "classify.receive", "action"), "subscribe"),
        (("components", "messages", "Submitted", "bindings", "kafka", "schemaIdLocation"), "somewhere"),
        (("components", "messages", "Submitted", "payload", "schema", "fields"), "none"),
        (("servers", "production", "host"), 9092),
    ],
)
def test_the_official_schema_looks_at_bindings_and_at_avro(
    document: dict[str, Any], official: Draft7Validator, path: tuple[str, ...], wrong: object
) -> None:
    broken = copy.deepcopy(document)
    place = broken
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = wrong
    assert not official.is_valid(broken)
