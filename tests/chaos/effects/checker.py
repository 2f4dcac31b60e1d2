"""What must hold of effects and money after a run: by what the API, the mail server and the handlers saw themselves.

It shares no code with the runtime: keys and costs are reckoned anew.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Any

#: Output tokens of the fake API's answers that do; see storm.py.
MARK = 17

#: Dollars for a million tokens: input, output, read from the cache, written to it.
PRICES = {"claude-cheap": (1.0, 5.0, 0.1, 1.25), "claude-dear": (3.0, 15.0, 0.3, 3.75)}

_TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
#: How a call may end of which its worker did not hear: it may not even have been made.
_UNHEARD = ("unknown", "abandoned")
#: Why events of an agent may be dead letters.
_CAUSES = {
    "judge": {"attempts", "refused", "truncated", "invalid_output", "killed"},
    "post": {"attempts", "held", "killed"},
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of a run at rest."""

    jobs: Mapping[str, bool]  #: trace ids that were submitted, and whether their mails are to be held
    calls: Sequence[Mapping[str, Any]]  #: of the fake API: key, model, usage
    mails: Sequence[str]  #: Message-IDs, in the order in which they came
    drops: Mapping[str, int]  #: by Message-ID: mails that were taken without a word
    steps: Sequence[Mapping[str, Any]]  #: rows of effects
    usage: Sequence[Mapping[str, Any]]
    budgets: Mapping[str, tuple[int, int]]  #: by key: spent, reserved
    limits: Mapping[str, int]  #: by the key without its day; `job` stands for each job's
    posted: Sequence[Mapping[str, Any]]  #: events
    failed: Sequence[Mapping[str, Any]]
    dead: Sequence[tuple[str, str, str]]  #: agent, cause, trace id
    waits: int
    disturbed: Mapping[str, int] = field(default_factory=dict)  #: by agent: workers killed or frozen
    concurrency: int = 0


def complaints(found: Evidence) -> list[str]:
    """Everything that does not hold; [] when all is well."""
    checks = (_ends, _mails, _answers, _rows_and_calls, _money_kept, _money_booked, _rest)
    return [complaint for check in checks for complaint in check(found)]


def key_of(step: Mapping[str, Any]) -> str:
    """The idempotency key of a step's row."""
    parts = (str(step["event_id"]), step["agent"], step["name"], str(step["generation"]))
    return "fd-" + sha256("\0".join(parts).encode()).hexdigest()[:32]


def cost(call: Mapping[str, Any]) -> int:
    """Micro-dollars of a call, rounded up."""
    rates = PRICES[call["model"]]
    each = (call["usage"].get(name, 0) * Decimal(str(rate)) for name, rate in zip(_TOKENS, rates, strict=True))
    return math.ceil(sum(each, Decimal(0)))


def _ends(found: Evidence) -> Iterator[str]:
    """Every job has come to an end that says why."""
    ended = {str(event["trace_id"]) for event in (*found.posted, *found.failed)} | {trace for _, _, trace in found.dead}
    for trace in found.jobs.keys() - ended:
        yield f"job {trace} has come to no end"
    for trace in ended - found.jobs.keys():
        yield f"job {trace} was never submitted"
    for event in found.failed:
        if event["reason"] != "over_budget":
            yield f"job {event['trace_id']} failed for {event['reason']!r}"
    for agent, cause, trace in found.dead:
        if cause not in _CAUSES[agent]:
            yield f"job {trace}: {agent} dead-lettered it as {cause!r}"
        if cause == "held" and not found.jobs.get(trace):
            yield f"job {trace} is held, and was not to be"


def _mails(found: Evidence) -> Iterator[str]:
    """One mail a step: never a second one under hold; else one more at most for each time nobody knew."""
    sent, disturbed = Counter(found.mails), found.disturbed.get("post", 0)
    known = {f"<{key_of(step)}@chaos>": step for step in found.steps if step["name"] == "mail"}
    again = 0
    for message_id, times in sent.items():
        step = known.get(message_id)
        if step is None:
            yield f"the mail {message_id} is of no step"
            continue
        trace, drops = str(step["trace_id"]), found.drops.get(message_id, 0)
        if found.jobs[trace] and times > 1:
            yield f"job {trace}: {times} mails, though they are to be held"
        if times > min(1 + drops + disturbed, step["begun"]):
            yield f"job {trace}: {times} mails, {drops} dropped connections, begun {step['begun']} times"
        again += max(0, times - 1 - drops)
    if again > disturbed * found.concurrency:
        yield f"{again} mails more than steps; only {disturbed} workers were disturbed"
    for event in found.posted:
        if event["message_id"] not in sent:
            yield f"job {event['trace_id']} says that {event['message_id']} was posted; it never came"


def _answers(found: Evidence) -> Iterator[str]:
    """A step stops at its answer: another one only where a worker may not have heard of it."""
    good = Counter(call["key"] for call in found.calls if call["usage"].get("output_tokens") == MARK)
    rows = _by_key(found)
    disturbed, again = found.disturbed.get("judge", 0), 0
    for key, times in good.items():
        unheard = sum(row["outcome"] in (*_UNHEARD, "timeout", "connection", "cut") for row in rows[key])
        again += max(0, times - 1 - unheard)
        if times > 1 + unheard + disturbed:
            yield f"{key} was answered {times} times, with {unheard} calls unheard and {disturbed} workers disturbed"
    if again > disturbed * found.concurrency:
        yield f"{again} answers more than steps; only {disturbed} workers were disturbed"


def _by_key(found: Evidence) -> dict[str, list[Mapping[str, Any]]]:
    keys = {(str(step["event_id"]), step["agent"], step["name"]): key_of(step) for step in found.steps}
    rows: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in found.usage:
        rows[keys.get((str(row["event_id"]), row["agent"], row["step"]), "no step")].append(row)
    return rows


def _rows_and_calls(found: Evidence) -> Iterator[str]:
    """Each call has its row; a row without a call is of a worker that was gone before it called."""
    rows, calls = _by_key(found), defaultdict(list)
    for call in found.calls:
        calls[call["key"]].append(call)
    for key in rows.keys() | calls.keys():
        unheard = sum(row["outcome"] in _UNHEARD for row in rows[key])
        if not len(rows[key]) - unheard <= len(calls[key]) <= len(rows[key]):
            yield f"{key}: {len(calls[key])} calls, {len(rows[key])} rows of usage, {unheard} of them unheard"
        told = Counter(_counts(row) for row in rows[key] if row["input_tokens"] is not None)
        charged = Counter(tuple(call["usage"].get(name, 0) for name in _TOKENS) for call in calls[key])
        if told - charged:
            yield f"{key}: rows of usage tell of tokens that the API did not charge: {told - charged}"
    missing = len(found.usage) - len(found.calls)
    if missing > sum(found.disturbed.values()) * found.concurrency:
        yield f"{missing} rows of usage without a call"


def _counts(row: Mapping[str, Any]) -> tuple[int, ...]:
    return row["input_tokens"], row["output_tokens"], row["cache_read_tokens"], row["cache_write_tokens"]


def _money_kept(found: Evidence) -> Iterator[str]:
    """By the API's own prices, and by our books, nothing is above its limit."""
    steps = {key_of(step): step for step in found.steps}
    charged: Counter[str] = Counter()
    for call in found.calls:
        step = steps.get(call["key"])
        if step is None:
            yield f"the API was called for {call['key']}, which is no step"
            continue
        keys = [f"job/{step['trace_id']}", f"agent/{step['agent']}", "day"]
        charged.update(dict.fromkeys(keys + [f"tenant/{step['tenant']}"] * bool(step["tenant"]), cost(call)))
    days = len({key.rpartition("/")[2] for key in found.budgets if not key.startswith("job/")}) or 1
    booked: Counter[str] = Counter()
    for key, (spent, _) in found.budgets.items():
        booked[key if key.startswith("job/") else key.rpartition("/")[0]] += spent
    for key in charged.keys() | booked.keys():
        limit = found.limits.get("job" if key.startswith("job/") else key)
        most = None if limit is None else limit * (1 if key.startswith("job/") else days)
        if most is not None and (charged[key] > most or booked[key] > most):
            yield f"{key}: the API charged {charged[key]}, {booked[key]} are booked; {most} were allowed"
        if key in booked and charged[key] > booked[key]:
            yield f"{key}: the API charged {charged[key]}, and {booked[key]} are booked"


def _money_booked(found: Evidence) -> Iterator[str]:
    """Each budget is the sum of its calls, and nothing is reserved any more."""
    sums: Counter[str] = Counter()
    for row in found.usage:
        for key in row["budgets"] or ():
            sums[key] += row["micro_dollars"]
    for key, (spent, reserved) in found.budgets.items():
        if reserved:
            yield f"{key}: {reserved} are reserved for nothing"
        if spent != sums[key]:
            yield f"{key}: {spent} are spent, its calls come to {sums[key]}"


def _rest(found: Evidence) -> Iterator[str]:
    """Nobody is at anything."""
    for step in found.steps:
        if step["state"] == "leased":
            yield f"step {step['name']} of {step['agent']} and job {step['trace_id']} is still leased"
    if found.waits:
        yield f"{found.waits} handlings wait"
