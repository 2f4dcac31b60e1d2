"""What is known of a run at rest, gathered from the API, the database and the topics by bare clients."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from typing import Any

from psycopg.rows import dict_row

from farandole.settings import Settings
from tests.acceptance import picture
from tests.chaos.effects.checker import Evidence
from tests.eventually import eventually
from tests.kafka_log import KafkaLog

_ENDS = ("posted", "failed", "dead_lettered")
_TABLES = {"step": "state IS NOT NULL", "usage": "true", "budget": "true", "wait": "true"}


def ended(log: KafkaLog) -> set[str]:
    """Trace ids of jobs that have come to an end."""
    return {str(event["trace_id"]) for events in _events(log).values() for event in events}


def gathered(settings: Settings, log: KafkaLog, api: str, **more: Any) -> Evidence:
    """Everything; `more` is what the run knows by itself."""
    events = _events(log)
    with (
        picture.connect(settings.database, settings.schema_name) as database,
        database.cursor(row_factory=dict_row) as cursor,
    ):
        rows = {
            name: cursor.execute(f"SELECT * FROM {name} WHERE {which}").fetchall() for name, which in _TABLES.items()
        }
    return Evidence(
        calls=_calls(api),
        steps=rows["step"],
        usage=rows["usage"],
        budgets={row["key"]: (row["spent"], row["reserved"]) for row in rows["budget"]},
        posted=events["posted"],
        failed=events["failed"],
        dead=[(event["agent"], event["cause"], str(event["trace_id"])) for event in events["dead_lettered"]],
        waits=len(rows["wait"]),
        **more,
    )


def _events(log: KafkaLog) -> dict[str, list[dict[str, Any]]]:
    return {name: log.fields(f"jobs.{name}") if log.exists(f"jobs.{name}") else [] for name in _ENDS}


def _calls(api: str) -> list[dict[str, Any]]:
    """What the API was asked; some calls end there after their client has gone."""

    def look() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{api}/_calls", timeout=30) as answer:
            calls: list[dict[str, Any]] = json.load(answer)
        return calls if all(call["ended"] is not None for call in calls) else []

    return [
        {"key": call["headers"].get("idempotency-key", ""), "model": call["body"]["model"], "usage": call["usage"]}
        for call in eventually(look, "the end of all calls")
    ]


def figures(found: Evidence) -> dict[str, Any]:
    """What a run was made of."""
    return {
        "jobs": len(found.jobs),
        "calls": len(found.calls),
        "usage rows": len(found.usage),
        "outcomes": dict(Counter(row["outcome"] for row in found.usage)),
        "mails": len(found.mails),
        "mails twice": len(found.mails) - len(set(found.mails)),
        "posted": len({event["trace_id"] for event in found.posted}),
        "over budget": len({event["trace_id"] for event in found.failed}),
        "dead letters": dict(Counter(f"{agent}: {cause}" for agent, cause, _ in found.dead)),
        "begun again": sum(step["begun"] - 1 for step in found.steps),
        "spent": {key: spent for key, (spent, _) in found.budgets.items() if not key.startswith("job/")},
        "disturbed": dict(found.disturbed),
    }
