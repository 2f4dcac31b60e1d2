"""Effects of which nobody knows whether they happened, decided by a person who has looked."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from farandole.errors import ExitCode, FarandoleError
from farandole.postgres import Connection
from farandole.steps.listing import Effect, effects
from farandole.steps.results import LARGEST

_SQL = {
    name: (Path(__file__).parent / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    for name in ("release_lock", "release", "book_unknown")
}


def checked(text: str) -> str:
    """A result typed by a person, as it is kept. Raises FarandoleError for what is no JSON, or is too large."""
    try:
        kept = json.dumps(json.loads(text, parse_constant=_no_constant), ensure_ascii=False, allow_nan=False)
        size = len(kept.encode())
    except (ValueError, RecursionError) as error:
        raise FarandoleError(
            f"--done is no JSON ({error}); expected the result as JSON, such as '\"sent\"' or null", ExitCode.USAGE
        ) from None
    if size > LARGEST:
        raise FarandoleError(f"--done has {size:,} bytes; at most {LARGEST:,} are kept", ExitCode.USAGE)
    return kept


def _no_constant(name: str) -> Any:
    raise ValueError(f"it has no {name}")


def release(connection: Connection[Any], seen: Effect, result: str | None, reason: str | None) -> bool:
    """Decide about `seen`, as it was shown: it has happened, with the JSON `result`; or it has not, and may run again
    under the same key. False when that was decided so before.

    Raises FarandoleError when somebody is at it, when it has ended otherwise, or when it is no longer as it was shown.
    """
    if not (seen.live or seen.unknown):
        return _decided_before(seen, result)
    if seen.live:
        raise FarandoleError(
            f"step {seen.name} is under way: {seen.owner} has it for {seen.lease_seconds:.0f} s more unless it goes on; "
            "only a step that is held, or whose worker is gone, can be released"
        )
    given = asdict(seen) | {
        "becomes": "failed" if result is None else "done",
        "result": result,
        "why": _word(result, reason),
    }
    with connection.transaction():
        if connection.execute(_SQL["release_lock"], given).fetchone() is not None:
            connection.execute(_SQL["book_unknown"], [[seen.event_id], [seen.agent], [seen.name]])
            connection.execute(_SQL["release"], given)
            return True
    now = next(iter(effects(connection, event_id=seen.event_id, agent=seen.agent, name=seen.name)), None)
    if now is not None and now.state in ("done", "failed"):
        return _decided_before(now, result)
    raise FarandoleError(
        f"step {seen.name} has changed meanwhile: it was {seen.state} and is {now.state if now else 'gone'}; look again"
    )


def _word(result: str | None, reason: str | None) -> str:
    said = "it has not happened" if result is None else "it has happened"
    return f"released by a person: {said}{f' ({reason})' if reason else ''}"[:2000]


def _decided_before(seen: Effect, result: str | None) -> bool:
    """False when it stands as it is wanted. Raises FarandoleError when it does not."""
    if seen.state == "failed" and result is None:
        return False
    if seen.state == "done" and result is not None and seen.result is not None:
        if json.loads(seen.result) == json.loads(result):
            return False
        raise FarandoleError(f"step {seen.name} is done, with another result; `farandole steps show` shows it")
    what = "has run" if seen.state == "done" else f"is {seen.state}"
    raise FarandoleError(
        f"step {seen.name} {what}: nothing is to be released; `farandole dead redrive --forget` has a step of a dead letter "
        "run anew"
    )
