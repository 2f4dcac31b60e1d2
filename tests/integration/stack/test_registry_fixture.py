"""`farandole_registry`: a test that asks for it has a Schema Registry, and no other test notices."""

from __future__ import annotations

import os

from farandole.checks.registry import look_at
from farandole.settings import Settings


def test_a_test_that_asks_for_a_registry_has_it_in_its_settings(
    farandole_settings: Settings, farandole_registry: str
) -> None:
    assert look_at(farandole_registry).state == "ok"
    given = farandole_settings.schema_registry_url
    assert given and given.get_secret_value() == farandole_registry


def test_a_test_that_asks_for_none_has_none_though_one_runs(farandole_settings: Settings) -> None:
    given = farandole_settings.schema_registry_url
    assert (given and given.get_secret_value()) == os.environ.get("SCHEMA_REGISTRY_URL")
