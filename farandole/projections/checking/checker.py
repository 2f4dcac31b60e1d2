"""The check of one projection: what is seen at a glance, then trials, and of what they show the smallest case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from farandole.errors import ConfigurationError
from farandole.event import Event
from farandole.projections.checking import advice, inspecting, layouts, sample, shrink, touching
from farandole.projections.checking.findings import Counterexample, Difference, Finding, Report, Shown
from farandole.projections.checking.layouts import Layout
from farandole.projections.checking.sample import Sample, Source
from farandole.projections.checking.sandbox import Rows, Sandbox, opened
from farandole.projections.checking.trials import Column, Outcome, Trials
from farandole.projections.folders import CORE, Projection
from farandole.settings import Settings

#: Rows of a table that are shown on each side.
_ROWS = 5


@dataclass(frozen=True, slots=True)
class Options:
    """How much is tried: `jobs` of each source (real, generated or both), all of it again for the same `seed`."""

    jobs: int = 10
    seed: int = 1
    source: Source = "both"


def check(
    settings: Settings, projection: Projection, core: Projection, classes: Sequence[type[Event]], options: Options
) -> Report:
    """Look for two ways of folding the same events that leave different rows, and for what is known to end badly.

    `core` is the fold of job_state that goes first, `classes` are what events are drawn from. The runtime's tables must be
    there; nothing outside a schema of the check's own is changed. Raises Unreachable.
    """
    report = Report(projection.name, projection.where, list(inspecting.words(projection)))
    if report.findings:
        return report
    with opened(settings, projection, None if projection.name == CORE else core) as sandbox:
        trials = Trials(sandbox)
        try:
            sandbox.install()
        except ConfigurationError as error:
            report.findings.append(Finding("typo", str(error)))
            return report
        noted = [*inspecting.views(sandbox), *inspecting.catalog(sandbox), *inspecting.clock(projection)]
        for one in sample.samples(sandbox, classes, options.source, options.jobs, options.seed):
            report.events += len(one.jobs)
            found = _Check(trials, projection, one, options.seed).findings()
            report.findings += [finding for finding in found if _new(finding, report.findings)]
            if not report.passed:
                break
        if not report.events:
            raise ConfigurationError("event_log is empty: there are no real events to check with; see --events")
        report.findings += [finding for finding in noted if _new(finding, report.findings)]
        report.trials = trials.count
    return report


def _new(finding: Finding, known: Sequence[Finding]) -> bool:
    """Whether it says something that no counterexample of `known` has shown already."""
    if finding.kind == "clock":
        return all(other.kind != "time" for other in known)
    if finding.kind == "float":
        column = finding.what.split()[1]
        shown = {
            f"{difference.table}.{name}"
            for other in known
            if other.kind == "float" and other.example
            for difference in other.example.rows
            for name in advice.differing(difference)
        }
        return column not in shown
    return all((other.kind, other.what) != (finding.kind, finding.what) for other in known)


class _Check:
    """The trials of one sample."""

    def __init__(self, trials: Trials, projection: Projection, events: Sample, seed: int) -> None:
        self.trials = trials
        self.sandbox: Sandbox = trials.sandbox
        self.projection = projection
        self.events = events
        self.seed = seed

    def findings(self) -> list[Finding]:
        found = inspecting.rehearsed(self.sandbox, self.events.ids)
        if any(finding.severity == "fault" for finding in found):
            return found
        self.trials.ignored.clear()
        reference = layouts.plain(self.events.ids)
        outcome = self.trials.run(reference)
        if outcome.refused is not None:
            return [*found, self._refused(reference)]
        again = self.trials.run(reference)
        if again != outcome:
            found.append(self._unsteady(reference))
            self.trials.ignored |= self.trials.unsteady(outcome, again)
            again = self.trials.run(reference)
            if self.trials.run(reference) != again:
                return found  # whole rows come and go: nothing else can be told apart
        found += self._disagreements(reference, again)
        found += touching.found(self.trials, self.events.jobs, self.seed)
        return found

    def _disagreements(self, reference: Layout, outcome: Outcome) -> list[Finding]:
        """One for each group of columns that differ for a reason of their own."""
        found: list[Finding] = []
        for layout in layouts.tried(self.events.ids, self.events.jobs, self.seed):
            while self.trials.run(layout) != outcome:
                finding = self._disagreement(reference, layout)
                found.append(finding)
                columns = _columns(finding)
                if not columns:
                    return found  # rows are missing: whatever else is wrong cannot be told apart
                self.trials.ignored |= columns
                outcome = self.trials.run(reference)
        return found

    def _disagreement(self, reference: Layout, layout: Layout) -> Finding:
        ids, one, other = shrink.disagreement(self.trials, reference, layout, self.events.jobs)
        outcomes = self.trials.run(one), self.trials.run(other)
        refused = next((outcome for outcome in outcomes if outcome.refused is not None), None)
        if refused:
            return self._error(ids, one if refused is outcomes[0] else other, refused)
        rows = self._differences(*outcomes)
        if not rows:  # seen once: how the rows of a large batch lie in new_events is another matter each time
            return Finding("inside_batch", advice.sentence("inside_batch", rows), advice.of_chance())
        kind = advice.kind_of(one, other, self._only_floats(rows))
        example = Counterexample(self._shown(ids), told(one, ids), told(other, ids), rows)
        what = advice.sentence(kind, rows)
        return Finding(kind, what, advice.advice(kind, self.projection, rows), example=example)

    def _unsteady(self, reference: Layout) -> Finding:
        ids = shrink.fewest(
            self.events.ids, lambda kept: self.trials.differ(reference.of(set(kept)), reference.of(set(kept)))
        )
        few = reference.of(set(ids))
        rows = self._differences(self.trials.run(few), self.trials.run(few))
        example = Counterexample(self._shown(ids), told(few, ids), "the same a moment later", rows) if rows else None
        what = advice.sentence("time", rows)
        return Finding("time", what, advice.advice("time", self.projection, rows), example=example)

    def _refused(self, reference: Layout) -> Finding:
        ids = shrink.fewest(self.events.ids, lambda kept: self.trials.run(reference.of(set(kept))).refused is not None)
        few = reference.of(set(ids))
        return self._error(ids, few, self.trials.run(few))

    def _error(self, ids: Sequence[UUID], layout: Layout, outcome: Outcome) -> Finding:
        example = Counterexample(self._shown(ids), told(layout, ids), str(outcome.refused))
        return Finding(
            "error", f"the fold fails: {outcome.refused}", advice.of_error(outcome.sqlstate), example=example
        )

    def _differences(self, one: Outcome, other: Outcome) -> list[Difference]:
        found = []
        for table, columns in self.sandbox.columns.items():
            first, second = one.rows.get(table, []), other.rows.get(table, [])
            if first != second:
                found.append(Difference(table, list(columns), _less(first, second), _less(second, first)))
        return found

    def _only_floats(self, rows: Sequence[Difference]) -> bool:
        kinds = [self.sandbox.columns[rest.table][name] for rest in rows for name in advice.differing(rest)]
        return bool(kinds) and all(kind.startswith(("real", "double precision")) for kind in kinds)

    def _shown(self, ids: Sequence[UUID]) -> list[Shown]:
        return sample.shown(self.sandbox, ids, self.events.source == "generated")


def _columns(finding: Finding) -> set[Column]:
    """Those that its example explains."""
    rows = finding.example.rows if finding.example else []
    return {(difference.table, name) for difference in rows for name in advice.differing(difference)}


def told(layout: Layout, ids: Sequence[UUID]) -> str:
    """The layout with letters for its events, as `sample.shown` gives them."""
    letters = {one: sample.letter(place) for place, one in enumerate(sorted(ids))}
    batches = [" and ".join(letters[one] for one in batch) for batch in layout.batches]
    if layout.way == "at once":
        pairs = zip(batches[::2], batches[1::2], strict=True)
        return ", then ".join(f"{one or '-'} and {other or '-'} at once in two projectors" for one, other in pairs)
    if len(layout.batches) == 1 and len(layout.batches[0]) > 1:
        text = f"{', '.join(letters[one] for one in layout.batches[0])} in one batch"
    else:
        text = ", then ".join(
            f"{batch} in one batch" if len(ids_) > 1 else batch
            for batch, ids_ in zip(batches, layout.batches, strict=True)
        )
    if layout.way == "refold":
        text += ", all of them in event_log before (a refold)"
    return text + (f" (planned without {', '.join(layout.plan).replace('enable_', '')})" if layout.plan else "")


def _less(rows: Rows, others: Rows) -> Rows:
    """The first rows that the others have not."""
    left = list(others)
    found = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            found.append(row)
    return found[:_ROWS]
