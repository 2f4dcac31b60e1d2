"""Jobs page by page, and searched by words of their payloads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from typer.testing import CliRunner

from farandole import Client, paging, postgres, reading, search_index
from farandole.cli import app
from farandole.errors import ExitCode, FarandoleError
from farandole.paging import Filters, page
from farandole.postgres import Connection
from farandole.settings import Settings
from tests.integration.projection_tables import Folder, places, prepare
from tests.journeys import Classified, Done, Fact, Log, Submitted, new_fact

PARTITIONED = """
CREATE TABLE event_log_parted (LIKE event_log INCLUDING DEFAULTS, PRIMARY KEY (event_id)) PARTITION BY RANGE (event_id);
CREATE TABLE event_log_early PARTITION OF event_log_parted
  FOR VALUES FROM (MINVALUE) TO ('80000000-0000-0000-0000-000000000000');
CREATE TABLE event_log_late PARTITION OF event_log_parted
  FOR VALUES FROM ('80000000-0000-0000-0000-000000000000') TO (MAXVALUE);
"""
INSTEAD = """
INSERT INTO {new} SELECT * FROM event_log;
ALTER TABLE event_log RENAME TO event_log_before;
ALTER TABLE {new} RENAME TO event_log;
"""


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


class Mails:
    """Jobs by what they say, the first one the oldest."""

    def __init__(self, settings: Settings, *texts: str) -> None:
        self.log, self.settings = Log(settings), settings
        self.first = {text: new_fact(Submitted, occurred_at=1_800_000_000_000_000 + n) for n, text in enumerate(texts)}
        records = [self.log.append(Submitted, fact.fields, text=text) for text, fact in self.first.items()]
        Folder(settings, "a", places(records, settings)).fold(records)

    def fold(self, event: Any, text: str, says: str = "nothing", **changed: Any) -> Fact:
        fact = new_fact(event, cause=self.first[text], **changed)
        records = [self.log.append(event, fact.fields, text=says)]
        Folder(self.settings, "a", places(records, self.settings)).fold(records)
        return fact

    def named(self, found: paging.Page) -> list[str]:
        names = {UUID(fact.fields["trace_id"]): text for text, fact in self.first.items()}
        return [names[job.trace_id] for job in found.jobs]


def test_pages_follow_each_other_newest_first_and_end(farandole_settings: Settings, database: Connection[Any]) -> None:
    mails = Mails(farandole_settings, *"abcdefg")
    database.execute("UPDATE job SET updated_at = '2027-02-01' WHERE updated_at > (SELECT min(updated_at) FROM job)")
    seen, after = [], None
    for _ in range(4):
        found = page(database, Filters(), after=after, limit=2)
        seen += mails.named(found)
        after = found.next
    assert sorted(seen) == list("abcdefg"), "six of them moved in the same moment: each is on one page"
    assert seen[-1] == "a"
    assert (after, found.looked) == (None, None)


def test_a_job_that_moves_between_two_pages_leaves_the_others_where_they_are(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    mails = Mails(farandole_settings, *"abcde")
    first = page(database, Filters(), limit=2)
    mails.fold(Classified, "a", occurred_at=1_900_000_000_000_000)
    mails.fold(Classified, "e", occurred_at=1_900_000_000_000_001)
    second = page(database, Filters(), after=first.next, limit=5)
    assert (mails.named(first), mails.named(second)) == (["e", "d"], ["c", "b"])
    assert mails.named(page(database, Filters(), limit=2)) == ["e", "a"]


def test_what_is_no_cursor_is_refused(database: Connection[Any]) -> None:
    for text in ("", "7", "x.00000000000000000000000000000000", f"{'9' * 18}.{'0' * 32}", f"1.{'0' * 31}"):
        with pytest.raises(
            FarandoleError, match="is no cursor; expected one that an earlier page has given"
        ) as refused:
            page(database, Filters(), after=text)
        assert refused.value.exit_code == ExitCode.USAGE


def test_what_is_no_limit_and_no_status_is_refused(database: Connection[Any]) -> None:
    for limit in (0, -1):
        with pytest.raises(FarandoleError, match=f"limit is {limit}; expected at least 1"):
            page(database, Filters(), limit=limit)
    with pytest.raises(FarandoleError, match="'gone' is no status; expected running, waiting, blocked, done, failed"):
        page(database, Filters(status="gone"))


SEARCHES = {
    "invoice": ["invoice 4711 paid", "the invoice is late"],
    "INVOICE -paid": ["the invoice is late"],
    '"is late"': ["the invoice is late"],
    "paid or parcel": ["a parcel came", "invoice 4711 paid"],
    "4711": ["invoice 4711 paid"],
    "thanked": ["a parcel came"],
    "invoice thanked": [],
    "text": [],
    "...": [],
}
TEXTS = ("invoice 4711 paid", "the invoice is late", "a parcel came", "late is the hour", "x" * 100_001 + " invoice")


@pytest.fixture
def mails(farandole_settings: Settings, database: Connection[Any]) -> Mails:
    mails = Mails(farandole_settings, *TEXTS)
    mails.fold(Done, "a parcel came", says="thanked")
    return mails


def found(mails: Mails, database: Connection[Any]) -> dict[str, list[str]]:
    return {words: sorted(mails.named(page(database, Filters(search=words)))) for words in SEARCHES}


@pytest.mark.parametrize("kind", [None, PARTITIONED], ids=["as it comes", "partitioned"])
def test_a_search_finds_the_same_with_and_without_an_index(
    mails: Mails, database: Connection[Any], kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "_CHUNK", 1)  # the others are found by the index, where there is one
    if kind:
        database.execute(postgres.script(kind + INSTEAD.format(new="event_log_parted")))
    assert found(mails, database) == SEARCHES
    made: list[str] = []
    search_index.switch_on(mails.settings, made.append)
    assert made, "each table once"
    assert len(made) == len(set(made))
    assert reading.rows(database, "search_index", {}) == [{"usable": True, "there": True}]
    assert found(mails, database) == SEARCHES
    with database.transaction():
        database.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        plan = database.execute("EXPLAIN " + _query("jobs"), _given("invoice")).fetchall()
    assert any("Bitmap Index Scan" in row[0] and "search" in row[0] for row in plan), "the planner sees that it fits"
    search_index.switch_on(mails.settings, made.append)
    assert len(made) == len(set(made)), "what is there is left alone"
    assert search_index.switch_off(mails.settings)
    assert not search_index.switch_off(mails.settings)
    assert reading.rows(database, "search_index", {}) == [{"usable": False, "there": False}]
    assert found(mails, database) == SEARCHES


def _query(name: str) -> Any:
    return reading.SQL[name].as_string()


def _given(words: str) -> dict[str, Any]:
    names = ("stage", "status", "older_than", "newer_than", "after_at", "after_id")
    return dict.fromkeys(names) | {"search": words, "limit": 5}


def test_an_index_that_was_left_half_made_is_made_anew(mails: Mails, database: Connection[Any]) -> None:
    database.execute(postgres.script(PARTITIONED + INSTEAD.format(new="event_log_parted")))
    search_index.switch_on(mails.settings, lambda _: None)
    database.execute("DROP INDEX event_log_search")
    database.execute(
        "CREATE INDEX of_yesterday ON event_log_late USING gin (jsonb_to_tsvector('simple', body, '[\"string\", \"numeric\"]'))"
        " WHERE octet_length(value) <= 100000"
    )
    database.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'of_yesterday'::regclass")
    made: list[str] = []
    search_index.switch_on(mails.settings, made.append)
    assert sorted(made) == ["event_log_early", "event_log_late"]
    assert reading.rows(database, "search_index", {}) == [{"usable": True, "there": True}]


def test_without_an_index_a_search_stops_where_it_has_looked_and_goes_on_behind(
    mails: Mails, database: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "_CHUNK", 2)
    monkeypatch.setattr(paging, "MOST", 2)
    filters = Filters(search="paid")
    seen, after, looked = [], None, []
    while True:
        found = page(database, filters, after=after)
        seen.append(mails.named(found))
        looked.append(found.looked)
        after = found.next
        if not after:
            break
    assert seen == [[], [], ["invoice 4711 paid"]]
    assert looked == [2, 2, None]


async def test_the_client_pages_and_searches(mails: Mails) -> None:
    async with Client(mails.settings) as client:
        first = await client.jobs(search="invoice", limit=1)
        second = await client.jobs(search="invoice", limit=1, after=first.next)
        done = await client.jobs(status="done")
    assert [mails.named(each) for each in (first, second, done)] == [[TEXTS[1]], [TEXTS[0]], ["a parcel came"]]


def test_the_command_shows_the_cursor_and_takes_it(mails: Mails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", mails.settings.database)
    monkeypatch.setenv("FARANDOLE_NAMESPACE", mails.settings.namespace)

    def command(*words: str) -> Any:
        ended = CliRunner().invoke(app, list(words))
        assert ended.exit_code == 0, ended.output
        return ended

    first = command("jobs", "--limit", "2", "--json")
    rows = json.loads(first.stdout)
    assert f"more: --after {rows[-1]['cursor']}" in first.stderr
    second = json.loads(command("jobs", "--after", rows[-1]["cursor"], "--json").stdout)
    assert len({row["trace_id"] for row in [*rows, *second]}) == len(TEXTS)
    assert "2 running" in command("jobs", "--search", "invoice").stdout
    assert "indexed" in command("projector", "search", "on").stderr
    assert "2 running" in command("jobs", "--search", "invoice").stdout
    assert "dropped" in command("projector", "search", "off").stderr
