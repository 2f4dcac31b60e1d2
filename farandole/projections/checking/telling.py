"""A report as text: what people read in the terminal, and in a test that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from farandole.projections.checking.findings import Counterexample, Difference, Report

#: Characters of a value that are shown in a table.
_WIDTH = 44
#: Characters of a line of text.
_LINE = 120


def text(report: Report) -> str:
    """All of a report, as lines that are not much wider than 120 characters."""
    return "\n".join(lines(report))


def lines(report: Report) -> Iterator[str]:
    tried = f"{report.events} events, {report.trials} trials"
    if not report.findings:
        yield f"{report.projection}: no order, batching or timing was found that changes its rows ({tried})"
        return
    faults = sum(finding.severity == "fault" for finding in report.findings)
    counted = [_count(faults, "fault"), _count(len(report.findings) - faults, "warning")]
    yield f"{report.projection}: {', '.join(part for part in counted if part)} ({tried})"
    for finding in report.findings:
        yield ""
        yield from _wrapped(f"{finding.severity} {finding.kind}: {finding.what}", "", "  ")
        if finding.example:
            yield from (f"  {line}".rstrip() for line in _example(finding.example))
        for line in finding.advice:
            yield from _wrapped(line, "  advice: ", "    ")


def _wrapped(line: str, first: str, after: str) -> Iterator[str]:
    yield from wrap(line, _LINE, initial_indent=first, subsequent_indent=after, break_on_hyphens=False)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""


def _example(example: Counterexample) -> Iterator[str]:
    events = [
        [
            event.letter,
            event.event_id,
            event.trace_id[:13] + "…",
            event.type,
            event.stage or "-",
            str(event.run),
            str(event.hop),
            event.occurred_at,
            event.body,
        ]
        for event in example.events
    ]
    yield from _table(["", "event", "job", "type", "stage", "run", "hop", "occurred_at", "body"], events)
    if any(event.generated for event in example.events):
        yield "(generated from the event classes; --seed draws others, --events real takes only those of the event log)"
    if not example.rows:
        yield f"folded as {example.first}: {example.second}"
        return
    yield f"1: {example.first}"
    yield f"2: {example.second}"
    for difference in example.rows:
        yield f"table {difference.table}:"
        yield from (f"  {line}" for line in _rows(difference))


def _rows(difference: Difference) -> Iterator[str]:
    marked: list[list[str]] = []
    for number, rows in (("1", difference.first), ("2", difference.second)):
        marked += [[number, *("null" if value is None else value or "''" for value in row)] for row in rows]
        if not rows:
            marked.append([number, "(no such row)", *[""] * (len(difference.columns) - 1)])
    yield from _table(["after", *difference.columns], marked)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    cut = [[_cut(value) for value in row] for row in (columns, *rows)]
    widths = [max(len(row[at]) for row in cut) for at in range(len(columns))]
    for row in cut:
        yield "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip()


def _cut(value: str) -> str:
    value = value.replace("\n", " ")
    return value if len(value) <= _WIDTH else value[: _WIDTH - 1] + "…"
