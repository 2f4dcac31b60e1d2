"""What a counterexample is called, in which sentence, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from farandole.projections.checking import wording
from farandole.projections.checking.findings import Difference, Kind
from farandole.projections.checking.layouts import Layout
from farandole.projections.folders import Projection

_SENTENCES: dict[str, str] = {
    "order": "the rows of {where} depend on the order in which the events arrive",
    "inside_batch": "the rows of {where} depend on the order of the events inside one batch",
    "batching": "the rows of {where} depend on how the events are cut into batches",
    "at_once": "the rows of {where} are others when two projectors fold at the same time, and neither sees the other's events",
    "refold": "a refold leaves other rows in {where}: event_log has all events then, before the first one is folded",
    "duplicates": "the rows of {where} are others when an event comes a second time",
    "time": "the same event, folded at another time, leaves other values in {where}",
    "float": "sums of floating-point numbers in {where} depend on the order in which the events arrive",
}

_ADVICE: dict[str, list[str]] = {
    "order": [
        "Let one key decide which event wins, whenever it comes, and keep that key in the row: overwrite only where"
        " (excluded.run, excluded.hop, excluded.occurred_at, excluded.event_id) is greater than what the row has. It must end"
        " with event_id, or two events tie. Counts, sums, least and greatest need no such key.",
    ],
    "inside_batch": [
        "Give whatever chooses or collects a total order: DISTINCT ON, LIMIT, first_value, array_agg and string_agg need an"
        " ORDER BY that ends with event_id.",
    ],
    "batching": [
        "Add the batch to what the row has: n = old.n + excluded.n, greatest(old.at, excluded.at). Averages and medians do not"
        " add up: keep sum and count, and divide in views.sql. Count events, never batches.",
    ],
    "at_once": [
        "Join events of one job only (the same trace_id): those are folded one batch after the other. Across jobs, a projector"
        " cannot see what another one has not committed: join in views.sql, when someone looks.",
        "Change a row by what it holds when it is written: ON CONFLICT DO UPDATE SET n = old.n + excluded.n, not a sub-select"
        " from the table.",
    ],
    "refold": [
        "A row that is gathered from event_log is gathered whole, each time: take the keys from new_events, compute the row"
        " from all their events in event_log, and overwrite it (n = excluded.n). What is added up comes from new_events alone.",
    ],
    "duplicates": ["Read new_events: it has each event once, whereas the log may bring it again."],
}


def kind_of(one: Layout, other: Layout, floats: bool) -> Kind:
    """What two ways that disagree are called after."""
    if floats:
        return "float"
    if "at once" in (one.way, other.way):
        return "at_once"
    if "refold" in (one.way, other.way):
        return "refold"
    ids = [id_ for batch in other.batches for id_ in batch]
    if len(ids) > len(set(ids)):
        return "duplicates"
    if len(one.batches) == len(other.batches) == 1:
        return "inside_batch"
    if len(one.batches) == len(other.batches) or [id_ for batch in one.batches for id_ in batch] != ids:
        return "order"
    return "batching"


def sentence(kind: Kind, rows: Sequence[Difference]) -> str:
    """What is wrong, naming tables, and columns where all the rows are there either way."""
    return _SENTENCES[kind].format(where=", ".join(_where(difference) for difference in rows) or "its tables")


def _where(difference: Difference) -> str:
    names = differing(difference)
    return f"{difference.table} ({', '.join(names)})" if names else difference.table


def differing(difference: Difference) -> list[str]:
    """The columns whose values are not the same on both sides; [] where a side has rows that the other has not at all."""
    if len(difference.first) != len(difference.second):
        return []
    return [
        name
        for at, name in enumerate(difference.columns)
        if sorted(str(row[at]) for row in difference.first) != sorted(str(row[at]) for row in difference.second)
    ]


def advice(kind: Kind, projection: Projection, rows: Sequence[Difference]) -> list[str]:
    if kind == "float":
        return [of_float(name) for difference in rows for name in differing(difference)[:1]][:1]
    if kind == "time":
        return _unsteady(projection)
    joins = wording.says(projection.fold, r"\bevent_log\b")
    if kind == "order" and joins:
        return _ADVICE["refold"]
    if kind == "at_once":
        return _ADVICE[kind][:1] if joins else _ADVICE[kind][1:]
    return _ADVICE[kind]


def _unsteady(projection: Projection) -> list[str]:
    """Why a fold says something else each time, as far as its words tell."""
    told = []
    for file, text in (("tables.sql", projection.tables), ("fold.sql", projection.fold)):
        at = f"{projection.where}/{file}"
        told += [f"{at}:{line}: {said} is the time of folding. Use occurred_at." for line, said in wording.clock(text)]
        told += [f"{at}:{line}: {said} is drawn anew. Use event_id." for line, said in wording.chance(text)]
        told += [
            f"{at}:{line}: {said} counts as rows come, and a refold counts anew. Use event_id, or the key of the group."
            for line, said in wording.serial(text)
        ]
    return told or ["A function that the fold calls gives another value each time: fold only what the events say."]


def of_chance() -> list[str]:
    """For rows that differed once and not again, which no example shows."""
    return _ADVICE["inside_batch"]


def of_float(column: str) -> str:
    return (
        f"Sum whole numbers: a bigint of millionths, (1000000 * {column})::bigint of each event before it is added; or numeric"
        " columns and sums."
    )


def of_error(sqlstate: str) -> list[str]:
    """What to do about an error that the database has given."""
    match sqlstate:
        case "21000":
            return ["One statement may change a row once: GROUP BY the columns of ON CONFLICT before inserting."]
        case "23505":
            return ["Several events have this key: add ON CONFLICT … DO UPDATE, or a column that tells them apart."]
        case "23502":
            return ["A value may be missing in an event: coalesce it, or leave such events out with WHERE."]
        case "40P01" | "55P03" | "57014":
            return ["Touch rows in the order of their key: INSERT INTO … SELECT … ORDER BY the key."]
        case "25000":
            return ["Leave transactions to the projector."]
    return [
        "A projector suspends the projection at such an event. Cast only what fits: test it in WHERE or CASE first."
    ]
