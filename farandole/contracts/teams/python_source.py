"""Event classes as Python source, written from Avro schemas: what another team needs to read and write events."""

from __future__ import annotations

import keyword
import sys
import types
from collections.abc import Iterable, Sequence

from pydantic import PydanticUserError

from farandole.contracts.avro import full_name, is_name, last
from farandole.contracts.deriving import derive
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS, Schema
from farandole.contracts.teams.python_layout import Unfit, call, doc, imports, quoted
from farandole.contracts.teams.python_types import Annotations, members, named_types, outline
from farandole.errors import ConfigurationError
from farandole.event import Event

HEADER = '"""Events of other teams, written by `farandole schemas python`: write it anew rather than change it."""'


def source(schemas: Sequence[Schema], *, topic: str | None = None, view: bool = False) -> str:
    """A module with one event class a schema, and the records and enums in them.

    Args:
        schemas: of events, JSON-ready. The envelope's fields are left out: each event has them anyway.
        topic: of those that name none themselves, as schemas from elsewhere.
        view: classes that only read (see `Event`). They leave out what a class cannot hold, and say so.

    Raises ConfigurationError that names the schema and the field which a class cannot have, or what else is missing.
    """
    text = _Module(schemas, topic, view=view).text()
    _prove(text)
    return text


def _prove(text: str) -> None:
    """Make the classes and derive their schemas, so that what is handed out can be used."""
    module = types.ModuleType(f"farandole_written_{id(text)}")
    sys.modules[module.__name__] = module  # pydantic looks annotations up here
    try:
        exec(compile(text, module.__name__, "exec"), vars(module))
        for event in vars(module).values():
            if isinstance(event, type) and event.__module__ == module.__name__ and issubclass(event, Event):
                derive(event, event.__event__.topic.partition(".")[0])
    except PydanticUserError as error:
        raise ConfigurationError(f"pydantic cannot make the classes: {str(error).splitlines()[0]}") from error
    finally:
        del sys.modules[module.__name__]


class _Module:
    """One source file in the making: classes in the order in which they can be defined."""

    def __init__(self, schemas: Sequence[Schema], topic: str | None, *, view: bool) -> None:
        self.schemas, self.topic, self.view = schemas, topic, view
        self.where = ""  #: the schema that is being written
        self.named = _named(schemas)
        events = {last(schema["name"]) for schema in schemas}
        fields = {field["name"] for one in (*schemas, *self.named.values()) for field in one.get("fields", ())}
        _check_names({*self.named, *events, *fields})
        self.types = Annotations(self.named, self.named.keys() | events, self.need, view=view)
        self.classes: dict[str, str] = {}  #: source by name; empty while it is being written
        self.later: list[str] = []  #: classes that mention one that comes after them
        self.open: list[str] = []
        self.others: dict[str, str] = {}  #: second names of classes, for those that have a field of the first one

    def text(self) -> str:
        for schema in self.schemas:
            self.event(schema)
        after = [f"{name}.model_rebuild()" for name in dict.fromkeys(self.later)]
        for name, other in self.others.items():
            self.classes[name] += f"\n\n\n{other} = {name}"
        body = [*self.classes.values(), *(["\n".join(after)] if after else [])]
        return "\n\n".join([HEADER, "from __future__ import annotations", *imports(self.types.imports)]) + (
            "\n\n\n" + "\n\n\n".join(body) + "\n"
        )

    def event(self, schema: Schema) -> None:
        name = last(schema["name"])
        if name in self.classes:
            raise ConfigurationError(f"two schemas are called {name}; write their classes into two files")
        called = f"{name}_" if keyword.iskeyword(name) else name
        topic = schema.get("topic") or self.topic
        if not topic:
            raise ConfigurationError(
                f"{full_name(schema)}: the schema names no topic, as one from elsewhere; say it with --topic NAME"
            )
        said = {key: schema.get(key) for key in ("stage", "terminal", "blocks", "ingest")}
        arguments = [f"topic={quoted(topic, name)}"]
        arguments += [
            f"{key}={quoted(one, name) if isinstance(one, str) else one}"
            for key, one in said.items()
            if one not in (None, False)
        ]
        arguments += [f"name={quoted(name, name)}"] if called != name else []
        arguments += self.aliases(schema)
        arguments += ["view=True"] if self.view else []
        self.where = full_name(schema)
        self.classes[name] = ""
        fields = [field for field in schema["fields"] if field["name"] not in ENVELOPE_FIELDS]
        lines = call(f"class {called}", [self.types.use("farandole", "Event"), *arguments], ":", indent=0)
        written = self.body(schema, fields, self.where)
        del self.classes[name]  # what it needed stands before it
        self.classes[name] = "\n".join([*lines, *written])

    def aliases(self, schema: Schema) -> list[str]:
        found = [last(alias) for alias in schema.get("aliases", ())]
        return [f"aliases=({', '.join(quoted(one, one) for one in found)},)"] if found else []

    def need(self, name: str) -> str:
        """Write the class of a named type, if it is not there yet; returns how annotations call it."""
        if name in self.open:
            self.later += [one for one in self.open[self.open.index(name) + 1 :] if one in self.named]
        elif name not in self.classes:
            if keyword.iskeyword(name):
                raise Unfit(f"{self.where}: its type {name} cannot be called so in Python")
            self.open.append(name)
            schema = self.named[name]
            self.classes[name] = self.enum(schema) if schema["type"] == "enum" else self.record(schema)
            self.open.remove(name)
        return self.others.setdefault(name, self.types.free(name)) if name in self.types.fields else name

    def record(self, schema: Schema) -> str:
        name = last(schema["name"])
        written = self.body(schema, schema["fields"], f"{self.where}, record {name}")
        return "\n".join([f"class {name}({self.part()}):", *written])

    def part(self) -> str:
        """The base of the records inside events, as strict as events themselves."""
        called = self.types.free("Part")
        if called not in self.classes:
            base, config = (self.types.use("pydantic", name) for name in ("BaseModel", "ConfigDict"))
            self.classes[called] = (
                f'class {called}({base}):\n    """A record inside an event."""\n\n'
                f'    model_config = {config}(frozen=True, extra="forbid", allow_inf_nan=False)'
            )
        return called

    def enum(self, schema: Schema) -> str:
        name = last(schema["name"])
        lines = [f"class {name}({self.types.use('enum', 'StrEnum')}):", *doc(schema)]
        _check_names(schema["symbols"])
        lines += [f"    {member} = {quoted(symbol, name)}" for symbol, member in members(schema["symbols"]).items()]
        if "default" in schema:
            lines += ["", f"    __unknown__ = {quoted(schema['default'], name)}"]
        return "\n".join(lines)

    def body(self, schema: Schema, fields: Sequence[Schema], place: str) -> list[str]:
        """What stands below the line of a class; `place` names it in errors."""
        made: list[str] = []
        around, self.types.fields = self.types.fields, {_attribute(field["name"]) for field in fields}
        for field in fields:
            try:
                made += self.field(field, f"{place}.{field['name']}")
            except Unfit as unfit:
                if not self.view:
                    raise
                made.append(f"    # left out: {' '.join(str(unfit).removeprefix(f'{place}.').split())}")
        self.types.fields = around
        if any(_attribute(field["name"]) != field["name"] for field in fields):
            config = self.types.use("pydantic", "ConfigDict")
            made = [f"    model_config = {config}(validate_by_name=True, validate_by_alias=True)", "", *made]
        return [*doc(schema), *made] if made else doc(schema)[:-1] or ["    pass"]

    def field(self, field: Schema, path: str) -> list[str]:
        name = _attribute(field["name"])
        notes: list[str] = []
        annotation = self.types.of(field["type"], path, notes)
        given = [self.types.default(field["type"], field["default"], path)] if "default" in field else []
        said = [f"alias={quoted(field['name'], path)}"] if name != field["name"] else []
        said += [f"description={quoted(field['doc'], path)}"] if field.get("doc") else []
        start = f"    {name}: {annotation}"
        if field.get("personal"):
            made = call(f"{start} = {self.types.use('farandole', 'personal')}", [*given, *said], "", indent=4)
        elif said:
            made = call(f"{start} = {self.types.use('pydantic', 'Field')}", [*given, *said], "", indent=4)
        else:
            made = [start + (f" = {given[0]}" if given else "")]
        return [*(f"    # {note}" for note in notes), *made]


def _attribute(name: str) -> str:
    """What a field is called in Python; its name in the schema is then its alias."""
    if name.startswith("model_") and hasattr(Event, name):
        return f"field_{name}"
    if keyword.iskeyword(name) or name.startswith("_") or hasattr(Event, name):
        return f"{name.lstrip('_') or 'field'}_"
    return name


def _check_names(names: Iterable[str]) -> None:
    """They become part of the source: nothing but Avro's names may."""
    for name in names:
        if not is_name(name):
            raise ConfigurationError(f"{name!r} is no Avro name; expected ASCII letters, digits and _")


def _named(schemas: Sequence[Schema]) -> dict[str, Schema]:
    """The named types of all schemas by their short names. Raises ConfigurationError when two differ."""
    found: dict[str, Schema] = {}
    events = {last(schema["name"]) for schema in schemas}
    for schema in schemas:
        for one in named_types(schema):
            name = last(one["name"])
            if name in events:
                raise ConfigurationError(
                    f"{full_name(schema)}: its type {name} is called like an event; two classes cannot be"
                )
            if outline(found.setdefault(name, one)) != outline(one):
                raise ConfigurationError(
                    f"{full_name(schema)}: its type {name} differs from another schema's; write the classes into two files"
                )
    return found
