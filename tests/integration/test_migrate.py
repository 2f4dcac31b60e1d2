"""Migrations: once, whoever starts them and however often."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from farandole import migrate, postgres
from farandole.errors import ConfigurationError
from farandole.settings import Settings


def test_many_that_start_at_once_apply_each_version_once(farandole_settings: Settings) -> None:
    assert migrate.check(farandole_settings) == migrate.versions()
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(lambda _: migrate.migrate(farandole_settings), range(4)))
    assert sorted(applied) == [[], [], [], migrate.versions()]
    assert migrate.migrate(farandole_settings) == migrate.check(farandole_settings) == []


def test_a_database_newer_than_the_code_is_refused_in_words(farandole_settings: Settings) -> None:
    migrate.migrate(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigurationError, match=r"at version 9999.*upgrade farandole"):
        migrate.migrate(farandole_settings)
