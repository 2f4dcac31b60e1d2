"""`ctx.once` of a plain handler: its function runs in the handler's thread, the ledger is on the event loop."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from farandole.errors import ConfigurationError
from farandole.steps import results
from farandole.steps.effects import Effects, IfUnknown, Replayed, failed, takes_key

T = TypeVar("T")

Await = Callable[[Coroutine[Any, Any, Any]], Any]


def once_in_thread(
    effects: Effects, wait: Await, name: str, function: Callable[..., Any], kind: Any, if_unknown: IfUnknown
) -> Any:
    """As `Effects.once`; `wait` runs a coroutine on the event loop and returns its result."""
    step, where = effects.step(name), effects.where(name)
    if inspect.iscoroutinefunction(function):
        raise ConfigurationError(f"{where}: an async function in a plain handler; give a plain one")
    kind = results.result_type(function, where) if kind is None else kind
    results.adapter(kind, where)  # before anything is called
    while True:
        try:
            begun = wait(effects.begin(step, if_unknown))
        except Replayed as replayed:
            return replayed.value(kind, where)
        with effects.leased(begun.claim):
            try:
                value = function(begun.key) if takes_key(function) else function()
            except BaseException as error:
                wait(_awaited(effects, failed(begun, error)))
                raise
        recorded = wait(effects.done(begun, kind, value))
        if recorded is not None:
            return results.decode(kind, recorded, where)


async def _awaited(effects: Effects, end: Any) -> bool:
    return await effects.written(effects.finish(end))
