"""How large the projection is, how long jobs are kept and what is kept longer, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farandole.retention.policy import Held, Policy
    from farandole.retention.sizes import Size, Storage


def storage_lines(storage: Storage) -> Iterator[str]:
    """The event log, the jobs, the policy, and what it leaves."""
    count = len(storage.partitions)
    yield f"event_log: {_size(storage.event_log, 'events')}, {count} partitions"
    if storage.job:
        yield f"job: {_size(storage.job, 'jobs')}"
    yield policy_line(storage.policy)
    yield from held_lines(storage.policy.held)


def policy_line(policy: Policy) -> str:
    """How long jobs are kept."""
    kept = "for ever" if policy.keep is None else f"{policy.keep.days} days after their last event"
    return f"jobs are kept {kept}" + (f", {policy.jobs} were forgotten so far" if policy.jobs else "")


def held_lines(held: Sequence[Held]) -> Iterator[str]:
    """The jobs that are older than the policy and have not ended, a line for each partition."""
    for one in held:
        more = ", …" if one.jobs > len(one.some) else ""
        jobs = "1 job that has not ended" if one.jobs == 1 else f"{one.jobs} jobs that have not ended"
        yield f"{one.partition} stays for {jobs}: {', '.join(one.some)}{more}"


def _size(size: Size, unit: str) -> str:
    rows = "nobody has counted the" if size.rows is None else f"about {size.rows}"
    return f"{rows} {unit}, {bytes_text(size.table_bytes)} and {bytes_text(size.index_bytes)} of indexes"


def bytes_text(count: int) -> str:
    """A size at a glance.

    >>> [bytes_text(x) for x in (0, 8192, 5_000_000, 3_210_000_000)]
    ['0 B', '8.2 kB', '5.0 MB', '3.2 GB']
    """
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
