"""How the work goes: what is folded, what was put aside, who is behind and who stands still."""

from __future__ import annotations

from collections.abc import Iterator

from farandole import health, projections, reading
from farandole.examination import Examination, Finding, need
from farandole.projections.states import states

#: What each count of trouble means for a person.
_TROUBLES = {
    "parked": "SELECT * FROM parked: records that are no events, with their bytes",
    "gaps": "farandole gaps list: partitions of the projector that stand still until you decide",
    "conflicts": "SELECT * FROM conflict: an id came with two contents; the first was kept",
    "blocked": "farandole dead list: their dead letters need a decision",
}


def check_projections(state: Examination) -> Iterator[Finding]:
    """projections: the folders are right and folded as they are now"""
    found = projections.discover(need(state.project, "a project"))
    stand = states(need(state.migrated and state.database, "a migrated database"), found)
    state.folded = any(one.name == projections.CORE and one.live_since for one in stand)
    for one in stand:
        if one.error:
            what = f"{one.name}: {one.error}" if one.state == "failed" else f"{one.name} is suspended: {one.error}"
            yield Finding("projections", "problem", what, f"mend it, then `farandole projections refold {one.name}`")
    late = [f"{one.name} ({one.state})" for one in stand if one.state in ("new", "changed", "wanted", "building")]
    if late:
        yield Finding("projections", "warning", f"not live yet: {', '.join(late)}", "a projector builds them")
    else:
        yield Finding("projections", "ok", ", ".join(one.name for one in found))


def check_parked(state: Examination) -> Iterator[Finding]:
    """parked: no record was put aside, no partition stands still at a gap"""
    counts = reading.troubles(need(state.folded and state.database, "a projector that has run once"))
    for what, advice in _TROUBLES.items():
        count = counts[what]
        yield Finding(what, "warning" if count else "ok", str(count), advice if count else "")


def check_work(state: Examination) -> Iterator[Finding]:
    """work: who is behind has a worker, what is due was woken, nobody stands still"""
    settings, agents = need(state.settings, "settings"), need(state.agents, "agents that load")
    need(state.broker and state.migrated, "a broker and a migrated database")
    files = {agent.name: file for file, agent in agents.items()}
    found = health.look(settings, {agent.name: agent.wiring(settings.flow).topic for agent in agents.values()})
    findings = []
    for one in found.agents:
        if one.lag and one.lag.records and not one.members:
            advice = (
                f"farandole run {files[one.agent]}"
                if one.declared
                else "if the agent is no more, delete its group and its rows of agent_offset"
            )
            what = f"{one.agent} is {one.lag.records} records behind and has no worker"
            findings.append(Finding("work", "warning", what, advice))
        overdue = sum(wait.overdue for wait in one.waits)
        if overdue:
            what = f"{one.agent} has {overdue} waits that are due and not woken"
            findings.append(Finding("work", "warning", what, "a worker of the agent wakes them"))
        findings += [Finding("work", "problem", f"{one.agent}: {why}", "see `farandole status`") for why in one.still]
    yield from findings or [Finding("work", "ok", "nobody is behind without a worker, nobody stands still")]
