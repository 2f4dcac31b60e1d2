"""docs/queries.md: each query is run on the jobs of queried_jobs.py and answers what the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from farandole import postgres
from farandole.postgres import Connection
from farandole.settings import Settings
from tests.acceptance.readme import Block, blocks_of, normal, pattern
from tests.integration.projection_tables import prepare
from tests.integration.queried_jobs import fill

PAGE = "docs/queries.md"
#: The day on which the page was written, so to say.
TODAY = date(2026, 7, 2)


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        connection.execute("SET timezone TO 'UTC'")
        yield connection


def answer(connection: Connection[Any], query: str) -> str:
    """As psql shows it, but for spaces and lines."""
    cursor = connection.execute(postgres.script(query), prepare=False)
    result = cursor.pgresult
    assert result is not None
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    rows = [
        [(result.get_value(row, column) or b"").decode() for column in range(result.nfields)]
        for row in range(result.ntuples)
    ]
    return "\n".join(" | ".join(row) for row in [names, *rows])


def queries() -> list[tuple[Block, Block]]:
    """Each with the answer below it."""
    found = [block for block in blocks_of(PAGE) if block.language in ("sql", "text")]
    assert [block.language for block in found] == ["sql", "text"] * (len(found) // 2)
    return list(zip(found[::2], found[1::2], strict=True))


def test_every_query_of_the_page_answers_what_the_page_shows(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    jobs, wrong = fill(farandole_settings, database), []
    for query, shown in queries():
        seen = answer(database, query.text)
        for days in range(4):
            seen = seen.replace(str(jobs.day - timedelta(days)), str(TODAY - timedelta(days)))
        wanted = re.sub(r"^[-+]+\n", "", shown.text, flags=re.MULTILINE)
        if not re.fullmatch(pattern(wanted), normal(seen) + "\n"):
            wrong.append(f"{query.at} shows:\n{wanted}but the answer is:\n{seen}\n")
    assert not wrong, "\n".join(wrong)


def test_the_page_asks_at_least_a_dozen_things_and_says_when_one_asks_them() -> None:
    text = "\n".join(block.text for block, _ in queries())
    assert len(queries()) >= 12
    for table in ("job_state", "journey", "stuck_jobs", "stage_durations", "throughput", "failures", "usage", "wait"):
        assert re.search(rf"\b(FROM|JOIN) {table}\b", text), table
