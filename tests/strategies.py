"""Hypothesis strategies: any valid instance of an event class, drawn from its annotations and their limits."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin
from uuid import UUID

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import AwareDatetime, BaseModel, ValidationError
from pydantic.fields import FieldInfo

Model = TypeVar("Model", bound=BaseModel)

#: Elements of a list, set or map; more of them show nothing new and make a hundred examples slow.
MOST = 3
#: Characters and bytes, for the same reason.
LONGEST = 30
#: What an Avro long holds, and a decimal without limits.
_LONG = 2**63
_DIGITS = 12
#: A zone's offset can carry a time over either end of the calendar; what lies a day inside has an instant in UTC.
_FIRST, _LAST = datetime(1, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001  the zones are drawn beside them
#: 64 bits of microseconds; Python's own timedelta goes on for 2,700 times that.
_LONGEST_TIME = timedelta(microseconds=_LONG - 1)

Limits = dict[str, Any]


def instances(model: type[Model]) -> SearchStrategy[Model]:
    """Any instance that `model` itself takes: fields with a default are left out in some.

    Strings hold no lone surrogates, numbers no NaN; whole numbers, and timedeltas in microseconds, fit 64 bits unless the
    field says less. An instance that a validator of the class refuses is drawn anew. Raises TypeError naming the field
    whose type is not known here.
    """
    return st.deferred(lambda: _instances(model))


@cache
def _instances(model: type[Model]) -> SearchStrategy[Model]:
    fields = {
        (name, info.is_required()): _field(info, f"{model.__name__}.{name}")
        for name, info in model.model_fields.items()
    }
    needed = {name: values for (name, required), values in fields.items() if required}
    optional = {name: values for (name, required), values in fields.items() if not required}

    def build(values: dict[str, Any]) -> Model:
        try:
            return model.model_validate(values, by_alias=False, by_name=True)
        except ValidationError:
            reject()

    return st.fixed_dictionaries(needed, optional=optional).map(build)


def _field(info: FieldInfo, path: str) -> SearchStrategy[Any]:
    return _values(info.annotation, _limits(info.metadata), path)


def _limits(metadata: Iterable[Any]) -> Limits:
    """What annotated-types and pydantic say of a value, by its name there: ge, max_length, pattern, …"""
    found: Limits = {}
    for one in metadata:
        if isinstance(one, FieldInfo):
            found |= _limits(one.metadata)
            continue
        slots = getattr(type(one), "__dataclass_fields__", None) or vars(one)
        found |= {name: getattr(one, name) for name in slots if getattr(one, name, None) is not None}
    return found


def _values(kind: Any, limits: Limits, path: str) -> SearchStrategy[Any]:
    """The values of one annotation; `path` names the field in errors."""
    origin, args = get_origin(kind), get_args(kind)
    if isinstance(kind, TypeVar | str):
        raise TypeError(f"{path}: {kind!r} is not known when it is drawn")
    if origin is Annotated:
        return _values(args[0], limits | _limits(args[1:]), path)
    if hasattr(kind, "__supertype__"):  # NewType
        return _values(kind.__supertype__, limits, path)
    if hasattr(kind, "__value__"):  # `type X = …`
        return _values(kind.__value__, limits, path)
    if origin in (Union, types.UnionType):
        return st.one_of([_values(branch, limits, path) for branch in args])
    if origin is Literal:
        return st.sampled_from(args)
    if kind in _PLAIN:
        return _PLAIN[kind](limits)
    if origin in _MANY:
        return _many(origin, args, limits, path)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return st.sampled_from(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return instances(kind)
    raise TypeError(f"{path}: no strategy for {kind!r}; expected one of the kinds in tests/strategies.py")


_MANY = (list, set, frozenset, tuple, dict)


def _many(origin: type, args: tuple[Any, ...], limits: Limits, path: str) -> SearchStrategy[Any]:
    least = limits.get("min_length", 0)
    size = {"min_size": least, "max_size": min(limits.get("max_length", least + MOST), least + MOST)}
    if origin is dict:
        return st.dictionaries(_values(args[0], {}, path), _values(args[1], {}, f"{path}{{}}"), **size)
    if origin is tuple and args[-1] is not Ellipsis:
        return st.tuples(*(_values(one, {}, f"{path}[]") for one in args))
    items = _values(args[0], {}, f"{path}[]")
    if origin is tuple:
        return st.lists(items, **size).map(tuple)
    return st.lists(items, **size) if origin is list else st.sets(items, **size).map(origin)


def _texts(limits: Limits) -> SearchStrategy[str]:
    characters = st.characters(exclude_categories=["Cs"])
    if pattern := limits.get("pattern"):
        return st.from_regex(pattern, fullmatch=True, alphabet=characters)
    return st.text(characters, **_length(limits))


def _length(limits: Limits) -> dict[str, int]:
    least = limits.get("min_length", 0)
    return {"min_size": least, "max_size": min(limits.get("max_length", LONGEST), least + LONGEST)}


def _integers(limits: Limits) -> SearchStrategy[int]:
    step = limits.get("multiple_of", 1)
    least = max(-_LONG, limits.get("ge", -_LONG), limits.get("gt", -_LONG - 1) + 1)
    most = min(_LONG - 1, limits.get("le", _LONG - 1), limits.get("lt", _LONG) - 1)
    return st.integers(-(-least // step), most // step).map(lambda number: number * step)


def _floats(limits: Limits) -> SearchStrategy[float]:
    least, most = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
    return st.floats(
        None if least is None else float(least),
        None if most is None else float(most),
        exclude_min="gt" in limits,
        exclude_max="lt" in limits,
        allow_nan=False,
        allow_infinity=False,
    )


def _decimals(limits: Limits) -> SearchStrategy[Decimal]:
    places = limits.get("decimal_places", 0)
    largest = 10 ** limits.get("max_digits", _DIGITS) - 1
    least = max(
        -largest, _scaled(limits.get("ge", -largest), places), _scaled(limits.get("gt", -largest - 1), places) + 1
    )
    most = min(largest, _scaled(limits.get("le", largest), places), _scaled(limits.get("lt", largest + 1), places) - 1)
    return st.integers(least, most).map(lambda number: Decimal(number).scaleb(-places))


def _scaled(limit: Any, places: int) -> int:
    return int(Decimal(limit).scaleb(places))


def _zones() -> SearchStrategy[timezone]:
    """Fixed offsets: of a time that a zone has twice, Python says that it equals no other."""
    return st.just(UTC) | st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


_PLAIN: dict[Any, Callable[[Limits], SearchStrategy[Any]]] = {
    type(None): lambda _: st.none(),
    str: _texts,
    int: _integers,
    float: _floats,
    bool: lambda _: st.booleans(),
    bytes: lambda limits: st.binary(**_length(limits)),
    Decimal: _decimals,
    UUID: lambda _: st.uuids(),
    date: lambda _: st.dates(),
    time: lambda _: st.times(),
    timedelta: lambda _: st.timedeltas(-_LONGEST_TIME, _LONGEST_TIME),
    AwareDatetime: lambda _: st.datetimes(_FIRST, _LAST, timezones=_zones()),
}
