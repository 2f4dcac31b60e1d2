"""Rows of a file as submissions: each checked against the event class, with errors that name line and field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from pydantic import ValidationError

from farandole.client import Submission
from farandole.errors import ExitCode, FarandoleError
from farandole.event import Event
from farandole.sources import Row


class InvalidRow(FarandoleError):
    """A row that is no valid event; says where it stands in its source."""

    def __init__(self, row: Row, what: str) -> None:
        super().__init__(f"{row.place}: {what}", ExitCode.FAILED)


def submissions(
    rows: Iterable[Row],
    event: type[Event],
    *,
    key: str | None = None,
    at: str | None = None,
    tenant: str | None = None,
    skip: Callable[[InvalidRow], None] | None = None,
) -> Iterator[Submission]:
    """One submission a row, drawn as they are needed.

    Args:
        key, at: the fields that name the job and its time.
        skip: given each invalid row; without it the first one is raised.
    """
    for name in filter(None, (key, at)):
        if name not in event.model_fields:
            raise FarandoleError(
                f"{event.__name__} has no field {name!r}; it has {', '.join(event.model_fields)}", ExitCode.USAGE
            )
    for row in rows:
        try:
            payload = _checked(row, event)
            yield Submission(payload, _key(row, payload, key), _time(row, payload, at), tenant)
        except InvalidRow as error:
            if skip is None:
                raise
            skip(error)


def _checked(row: Row, event: type[Event]) -> Event:
    try:
        return event.model_validate(row.fields)
    except ValidationError as error:
        detail = error.errors()[0]
        field = ".".join(map(str, detail["loc"]))
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise InvalidRow(row, f"field {field!r}: {detail['msg']}{more}") from error


def _key(row: Row, payload: Event, field: str | None) -> str | None:
    if field is None:
        return None
    value = getattr(payload, field)
    if value is None or not str(value):
        raise InvalidRow(row, f"field {field!r} is empty; it is the job's key")
    return str(value)


def _time(row: Row, payload: Event, field: str | None) -> datetime | None:
    if field is None:
        return None
    value = getattr(payload, field)
    if not isinstance(value, datetime):
        raise InvalidRow(row, f"field {field!r} is no time; --at expects one")
    return value
