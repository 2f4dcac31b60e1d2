"""What Avro itself says of types and names, with no schema at hand."""

from __future__ import annotations

import re

from farandole.contracts.envelope_fields import Schema

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

#: (written, wanted): what Avro 1.12 lets a reader take for what it wants.
PROMOTIONS = frozenset(
    {("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double")}
    | {("string", "bytes"), ("bytes", "string")}
)


def is_name(text: str) -> bool:
    """Whether a field, a symbol or, without its namespace, a type may be called so."""
    return re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", text) is not None


def full(name: str, namespace: str) -> str:
    """A name with its namespace, where it does not bring one of its own.

    >>> full("Placed", "orders"), full("shop.Placed", "orders"), full("Placed", "")
    ('orders.Placed', 'shop.Placed', 'Placed')
    """
    return name if "." in name or not namespace else f"{namespace}.{name}"


def last(name: str) -> str:
    """A full name without its namespace."""
    return name.rpartition(".")[2]


def full_name(schema: Schema) -> str:
    """A schema's name with its namespace."""
    return full(str(schema["name"]), schema.get("namespace") or "")


def earlier_names(schema: Schema) -> list[str]:
    """The full names that the schema's aliases give."""
    return [full(alias, full_name(schema).rpartition(".")[0]) for alias in schema.get("aliases", ())]
