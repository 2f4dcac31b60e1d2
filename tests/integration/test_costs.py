"""What models have cost, as the table `usage` has it, in `farandole costs`, in job_state and beside a journey."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from farandole import migrate, postgres
from farandole.costs import costs
from farandole.settings import Settings
from tests.commands import ROOT, typed
from tests.integration.projection_tables import prepare

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(farandole_settings: Settings) -> Run:
    migrate.migrate(farandole_settings)

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return typed(farandole_settings, *arguments, **{"COLUMNS": "160"} | more)

    return run


def spend(settings: Settings, day: str, agent: str, model: str, micro: int | None, outcome: str = "answered") -> None:
    query = (
        "INSERT INTO usage (call_id, at, trace_id, event_id, agent, step, model, input_tokens, output_tokens, "
        "cache_read_tokens, micro_dollars, outcome) VALUES (%s, %s, %s, %s, %s, 'x', %s, 100, 20, 300, %s, %s)"
    )
    with postgres.connect(settings) as connection:
        at = f"{day} 23:59:59+00"
        connection.execute(query, (uuid4(), at, uuid4(), uuid4(), agent, model, micro, outcome))


def test_without_calls_it_says_so(run: Run) -> None:
    found = run("costs", "--since", "2026-01-01", "--until", "2026-01-31")
    assert (found.returncode, found.stdout) == (0, "no model calls from 2026-01-01 to 2026-01-31\n")


def test_costs_are_summed_by_day_and_by_agent_and_model(run: Run, farandole_settings: Settings) -> None:
    spend(farandole_settings, "2026-01-01", "classify", "h", 1_500_000)
    spend(farandole_settings, "2026-01-02", "classify", "h", 250_000)
    spend(farandole_settings, "2026-01-02", "act", "s", 500_000, "timeout")
    spend(farandole_settings, "2026-01-03", "act", "odd", None)
    chosen = ("--since", "2026-01-01", "--until", "2026-01-02")
    lines = run("costs", *chosen).stdout.splitlines()
    assert lines[0].split() == ["day", "calls", "failed", "tokens", "in", "cached", "out", "cost"]
    assert lines[1].split() == ["2026-01-01", "1", "0", "400", "75%", "20", "$1.50", "█" * 30]
    assert lines[2].split() == ["2026-01-02", "2", "1", "800", "75%", "40", "$0.75", "█" * 15]
    assert lines[3] == "3 calls, $2.25"
    by = json.loads(run("costs", *chosen, "--by", "agent,model", "--json").stdout)["costs"]
    assert [(row["agent"], row["model"], row["micro_dollars"], row["failed"]) for row in by] == [
        ("act", "s", 500_000, 1),
        ("classify", "h", 1_750_000, 0),
    ]
    unpriced = run("costs", "--since", "2026-01-03", "--until", "2026-01-03")
    assert "$0.00+" in unpriced.stdout
    assert "1 call is of a model without a known price" in unpriced.stderr


def test_the_sums_are_of_all_calls_and_the_dearest_jobs_come_first(farandole_settings: Settings) -> None:
    migrate.migrate(farandole_settings)
    for micro in (5, 70, None, 30):
        spend(farandole_settings, "2026-01-05", "act", "m", micro)
    day = datetime(2026, 1, 5, tzinfo=UTC)
    with postgres.connect(farandole_settings) as connection:
        total, found = costs(connection, ["job"], day, day + timedelta(days=1), limit=2)
        nothing, none = costs(connection, ["day", "tenant"], day - timedelta(days=1), day)
    assert [cost.micro_dollars for cost in found] == [70, 30]
    assert (total.calls, total.micro_dollars, total.unpriced, total.input_tokens) == (4, 105, 1, 400)
    assert (nothing.calls, nothing.micro_dollars, none) == (0, 0, [])


def test_days_in_the_wrong_order_are_refused(run: Run) -> None:
    found = run("costs", "--since", "2026-01-02", "--until", "2026-01-01")
    assert (found.returncode, found.stderr) == (2, "error: --until 2026-01-01 is before --since 2026-01-02\n")


def test_bars_fit_where_little_room_is(run: Run, farandole_settings: Settings) -> None:
    spend(farandole_settings, "2026-01-01", "act", "m", 1_000_000)
    chosen = ("--since", "2026-01-01", "--until", "2026-01-01")
    narrow = run("costs", *chosen, COLUMNS="80", PYTHONIOENCODING="ascii").stdout
    assert [line.split()[-1] for line in narrow.splitlines()[1:2]] == ["#####"]
    assert max(map(len, narrow.splitlines())) <= 80


def test_the_queries_of_the_document_are_answered(farandole_settings: Settings) -> None:
    prepare(farandole_settings)
    spend(farandole_settings, "2026-01-01", "act", "m", 1_500_000)
    text = (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    queries = [query.strip() for query in block.split(";") if query.strip()]
    assert len(queries) == 7
    with postgres.connect(farandole_settings) as connection:
        answers = {query.splitlines()[0]: connection.execute(postgres.script(query)).fetchall() for query in queries}
    assert [(model, calls) for _, model, calls, _ in answers["-- a UTC day, by model"]] == [("m", 1)]
    assert answers["-- how much of the input came from the cache, by agent"][0][0] == "act"


def test_todays_budgets_stand_beside_their_limits(run: Run, farandole_settings: Settings) -> None:
    with postgres.connect(farandole_settings) as connection:
        for key, spent, reserved in (("agent/act", 400_000, 100_000), ("day", 1, 0), ("tenant/a/b", 3, 0)):
            connection.execute(
                "INSERT INTO budget VALUES (%s || '/' || to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD'), %s, %s)",
                (key, spent, reserved),
            )
        connection.execute("INSERT INTO budget VALUES ('day/2026-01-01', 1, 0), ('job/x', 1, 0)")
    limits = '{"day": 10, "agents": {"act": 0.5}, "tenants": {"a/b": 1, "idle": 2}}'
    found: list[dict[str, Any]] = json.loads(run("costs", "--json", FARANDOLE_BUDGETS=limits).stdout)["budgets"]
    assert [(row["key"].rpartition("/")[0], row["spent"], row["reserved"], row["limit"]) for row in found] == [
        ("agent/act", 400_000, 100_000, 500_000),
        ("tenant/a/b", 3, 0, 1_000_000),
        ("day", 1, 0, 10_000_000),
        ("tenant/idle", 0, 0, 2_000_000),
    ]
    assert "100%" in run("costs", FARANDOLE_BUDGETS=limits).stdout


def test_what_costs_cannot_be_summed_by_is_named(run: Run) -> None:
    found = run("costs", "--by", "colour")
    assert found.returncode == 2
    assert found.stderr == "error: --by colour: expected one or two of day, agent, model, tenant, job\n"


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("FARANDOLE_BUDGETS", '{"day": 2', "FARANDOLE_BUDGETS"),
        ("FARANDOLE_BUDGETS", '{"day": -1}', "FARANDOLE_BUDGETS.day"),
        ("FARANDOLE_BUDGETS", '{"week": 1}', "FARANDOLE_BUDGETS.week"),
        ("FARANDOLE_LIMITS", '{"m": {"requests": 0}}', "FARANDOLE_LIMITS.m.requests"),
        ("FARANDOLE_MODELS", '{"cheap": 3}', "FARANDOLE_MODELS.cheap"),
        ("FARANDOLE_LEASE_SECONDS", "nan", "FARANDOLE_LEASE_SECONDS"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(run: Run, variable: str, value: str, named: str) -> None:
    found = run("costs", **{variable: value})
    assert found.returncode == 3
    assert found.stderr.startswith(f"error: {named}"), found.stderr
    assert "Traceback" not in found.stderr
