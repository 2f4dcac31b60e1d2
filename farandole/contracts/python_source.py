"""Event classes as Python source, written from Avro schemas: what another team needs to read and write events."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Sequence

from farandole.contracts.envelope_fields import ENVELOPE_FIELDS, Schema
from farandole.contracts.python_types import Annotations, Unfit, named_types, quoted, short
from farandole.errors import ConfigurationError
from farandole.event import Event

#: Columns of the source, as ruff formats with this setting.
WIDTH = 120

_TITLE = '"""Events of other teams, written by `farandole schemas python`: write it anew rather than change it."""'


def source(schemas: Sequence[Schema], *, topic: str | None = None, view: bool = False) -> str:
    """A module with one event class a schema, and the records and enums in them.

    Args:
        schemas: of events, JSON-ready. The envelope's fields are left out: each event has them anyway.
        topic: of those that name none themselves, as schemas from elsewhere.
        view: classes that only read (see `Event`). They leave out what a class cannot hold, and say so.

    Raises ConfigurationError that names the schema and the field which a class cannot have, or what else is missing.
    """
    return _Module(schemas, topic, view=view).text()


class _Module:
    """One source file in the making: classes in the order in which they can be defined."""

    def __init__(self, schemas: Sequence[Schema], topic: str | None, *, view: bool) -> None:
        self.schemas, self.topic, self.view = schemas, topic, view
        for schema in schemas:
            if schema.get("type") != "record" or not schema.get("name"):
                raise ConfigurationError(f"{schema.get('name', 'a schema')}: not an Avro record; events are records")
        self.named = _named(schemas)
        events = {short(schema["name"]) for schema in schemas}
        fields = {field["name"] for one in (*schemas, *self.named.values()) for field in one.get("fields", ())}
        self.fields = fields
        self.types = Annotations(self.named, self.named.keys() | events | fields, self.need, view=view)
        self.classes: dict[str, str] = {}  #: source by name; empty while it is being written
        self.later: list[str] = []  #: classes that mention one that comes after them
        self.open: list[str] = []

    def text(self) -> str:
        for schema in self.schemas:
            self.event(schema)
        after = [f"{name}.model_rebuild()" for name in dict.fromkeys(self.later)]
        body = [*self.classes.values(), *(["\n".join(after)] if after else [])]
        return "\n\n".join([_TITLE, "from __future__ import annotations", *_imports(self.types.imports)]) + (
            "\n\n\n" + "\n\n\n".join(body) + "\n"
        )

    def event(self, schema: Schema) -> None:
        name = short(schema["name"])
        if name in self.classes:
            raise ConfigurationError(f"two schemas are called {name}; write their classes into two files")
        called = f"{name}_" if _is_reserved(name) or name in self.fields or name in _OURS else name
        topic = schema.get("topic") or self.topic
        if not topic:
            raise ConfigurationError(
                f"{_full(schema)}: the schema names no topic, as one from elsewhere; say it with --topic NAME"
            )
        said = {key: schema.get(key) for key in ("stage", "terminal", "blocks", "ingest")}
        arguments = [f"topic={quoted(topic, name)}"]
        arguments += [f"{key}={quoted(one, name) if isinstance(one, str) else one}" for key, one in said.items() if one]
        arguments += [f"name={quoted(name, name)}"] if called != name else []
        arguments += self.aliases(schema)
        arguments += ["view=True"] if self.view else []
        self.classes[name] = ""
        fields = [field for field in schema["fields"] if field["name"] not in ENVELOPE_FIELDS]
        lines = _call(f"class {called}", [self.types.use("farandole", "Event"), *arguments], ":", indent=0)
        written = self.body(schema, fields, name)
        del self.classes[name]  # what it needed stands before it
        self.classes[name] = "\n".join([*lines, *written])

    def aliases(self, schema: Schema) -> list[str]:
        found = [short(alias) for alias in schema.get("aliases", ())]
        return [f"aliases=({', '.join(quoted(one, one) for one in found)},)"] if found else []

    def need(self, name: str) -> str:
        """Write the class of a named type, if it is not there yet; returns how annotations call it."""
        called = self.types.free(name) if name in self.fields else name
        if name in self.open:
            self.later += [one for one in self.open[self.open.index(name) + 1 :] if one in self.named]
        elif name not in self.classes:
            if _is_reserved(name) or name in _OURS:
                raise Unfit(f"type {name}: a class inside an event cannot be called so in Python")
            self.open.append(name)
            schema = self.named[name]
            text = self.enum(schema) if schema["type"] == "enum" else self.record(schema)
            self.classes[name] = text + (f"\n\n\n{called} = {name}" if called != name else "")
            self.open.remove(name)
        return called

    def record(self, schema: Schema) -> str:
        config = f"{self.types.use('pydantic', 'ConfigDict')}(frozen=True, extra=\"forbid\", allow_inf_nan=False)"
        name = short(schema["name"])
        lines = self.body(schema, schema["fields"], name)
        place = 1 if lines and lines[0].lstrip().startswith('"""') and lines[0].endswith('"""') else 0
        if schema.get("doc"):
            place = next(n for n, line in enumerate(lines, 1) if line.endswith('"""') and line.strip() != '"""' or n > 1)
        head = f"class {name}({self.types.use('pydantic', 'BaseModel')}):"
        return "\n".join([head, *lines[:place], *([""] if place else []), f"    model_config = {config}", "", *lines[place:]])
