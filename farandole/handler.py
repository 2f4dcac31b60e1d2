"""What a handler's annotations say: which events it reads and emits, and whether it wants a context."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from farandole.context import BlockingContext, Context
from farandole.errors import ConfigurationError
from farandole.event import Event


@dataclass(frozen=True, slots=True)
class Handler:
    """The user's function and what its annotations say."""

    function: Callable[..., Any]
    reads: tuple[type[Event], ...]
    emits: tuple[type[Event], ...]
    is_async: bool
    takes_context: bool


def read_handler(function: Callable[..., Any]) -> Handler:
    """What the annotations of `function` say. Raises ConfigurationError with its line when they do not say enough."""
    place = place_of(function)
    try:
        hints = get_type_hints(function)
    except NameError as error:
        raise ConfigurationError(f"{place}: annotation not found: {error}") from error
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) not in (1, 2):
        raise ConfigurationError(
            f"{place}: a handler takes an event and, if it wants one, a context; found {len(parameters)} parameters"
        )
    missing = [name for name in [*parameters, "return"] if name not in hints]
    if missing:
        raise ConfigurationError(
            f"{place}: no annotation for {missing[0]!r}; topics and types come from the annotations"
        )
    reads = _events(hints[parameters[0]], place, "reads")
    emits = _events(_element(hints["return"]), place, "emits")
    if not reads:
        raise ConfigurationError(
            f"{place}: {parameters[0]!r} is no event; expected a subclass of Event, or a union of some"
        )
    if inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"{place}: an async generator would emit before it has ended; return a list")
    is_async = inspect.iscoroutinefunction(function)
    if len(parameters) == 2:
        _check_context(hints[parameters[1]], is_async, place)
    return Handler(function, reads, emits, is_async, len(parameters) == 2)


def _check_context(hint: Any, is_async: bool, place: str) -> None:
    expected = Context if is_async else BlockingContext
    if (get_origin(hint) or hint) is not expected:
        kind = "an async" if is_async else "a plain"
        raise ConfigurationError(f"{place}: {kind} handler's second parameter is a {expected.__name__}")


def _element(hint: Any) -> Any:
    """The event types inside `list[…]`, `tuple[…, ...]` and the like, or the hint itself."""
    origin = get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return Union[tuple(arg for arg in get_args(hint) if arg is not Ellipsis)]  # noqa: UP007  built at run time
    if origin in (Union, types.UnionType):
        return Union[tuple(_element(arg) for arg in get_args(hint))]  # noqa: UP007  built at run time
    return hint


def _events(hint: Any, place: str, verb: str) -> tuple[type[Event], ...]:
    found: Sequence[Any] = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    events = [kind for kind in found if kind is not type(None)]
    for kind in events:
        if not (isinstance(kind, type) and issubclass(kind, Event)):
            raise ConfigurationError(f"{place}: {verb} {getattr(kind, '__name__', kind)!r}, which is no Event")
    return tuple(events)


def folder_of(function: Callable[..., Any]) -> Path:
    """The folder of the file in which a function is written."""
    return Path(inspect.unwrap(function).__code__.co_filename).resolve().parent


def place_of(function: Callable[..., Any]) -> str:
    """File, line and name of a function, for people."""
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno} {function.__name__}"
