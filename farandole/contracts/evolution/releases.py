"""Released versions, kept in the repository: schema, records as bytes and their values; written once, read for ever."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farandole.contracts import codec, framing
from farandole.contracts.avro import full_name
from farandole.contracts.envelope_fields import Schema
from farandole.contracts.evolution.examples import examples
from farandole.contracts.evolution.history import Finding, History, findings, without
from farandole.errors import ConfigurationError, ExitCode, FarandoleError, Poison
from farandole.project import Project

#: Below the project; a folder an event type, in it N.avsc, N.json and N-1.bin, N-2.bin, … for each version N.
FOLDER = Path("tests/golden")

#: Beside the versions: a number. No reader of that version, or an older one, runs any more.
RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Damage:
    """A released file that is not what was released."""

    file: Path
    what: str


def histories(project: Project) -> dict[str, History]:
    """What was released, by full name. Raises ConfigurationError naming a file that cannot be read."""
    found: dict[str, History] = {}
    for folder in _folders(project):
        versions = {number: _schema(folder / f"{number}.avsc") for number in _numbers(folder)}
        if versions:
            found[folder.name] = History(folder.name, versions, _retired(folder))
    return found


@dataclass(frozen=True, slots=True)
class Report:
    """How a project's event types stand to what was released of them."""

    damage: list[Damage]
    findings: list[Finding]  #: breaks first, then warnings; [] while there is damage
    unreleased: list[str]  #: full names of types that differ from their last release, or have none
    any: bool  #: something was released

    @property
    def broken(self) -> bool:
        """Whether the check fails."""
        return bool(self.damage) or any(not one.problem.warning for one in self.findings)


def examine(project: Project, schemas: Iterable[Schema]) -> Report:
    """Hold the schemas of the classes against every released version, and that against what was released."""
    damaged = damage(project)
    if damaged:
        return Report(damaged, [], [], True)
    known, now = histories(project), list(schemas)
    unreleased = [full_name(schema) for schema in now if changed(schema, known.get(full_name(schema)))]
    return Report([], findings(now, known), unreleased, bool(known))


def changed(schema: Schema, history: History | None) -> bool:
    """Whether `schema` says anything else than the last release, texts for people aside."""
    if history is None or not history.versions:
        return True
    return bool(without(history.versions[history.last], "doc") != without(schema, "doc"))


def release(project: Project, schemas: Iterable[Schema]) -> list[tuple[str, int]]:
    """Write the next version of each event type that differs from its last one. Returns (full name, version) of each.

    Nothing is checked here, and nothing that was released is touched.
    """
    known, made = histories(project), []
    for schema in schemas:
        name = full_name(schema)
        if changed(schema, known.get(name)):
            version = known[name].last + 1 if name in known else 1
            _write(project.root / FOLDER / name, version, schema)
            made.append((name, version))
    return made


def retire(project: Project, name: str, version: int | None, living: Iterable[str]) -> int:
    """Note that no reader of `version` (default: of any) or an older one runs any more. Returns that version.

    Raises FarandoleError when there is no such release, or when it is the last one of a type in `living`, the full names of
    the types that have a class: its readers are the ones that run.
    """
    history = histories(project).get(name)
    if history is None or (version is not None and version not in history.versions):
        wanted = name if history is None else f"version {version} of {name}"
        there = ", ".join(histories(project)) if history is None else f"versions 1 to {history.last}"
        raise FarandoleError(f"{wanted} was not released; there is: {there or 'nothing'}", ExitCode.NOT_FOUND)
    if name in living and version in (None, history.last):
        raise FarandoleError(
            f"version {history.last} of {name} is what its class is, or was until the next release: its readers run; expected "
            f"an older version, or a type whose class is gone",
            ExitCode.USAGE,
        )
    up_to = max(version or history.last, history.retired)
    (project.root / FOLDER / name / RETIRED).write_text(f"{up_to}\n", encoding="utf-8")
    return up_to


def damage(project: Project) -> list[Damage]:
    """Released files that were edited or are gone, and records that no longer decode to their values."""
    return [one for folder in _folders(project) for one in _damage_of(folder)]


def _damage_of(folder: Path) -> Iterator[Damage]:
    numbers = _numbers(folder)
    for number in range(1, max(numbers, default=0) + 1):
        path = folder / f"{number}.avsc"
        if number not in numbers:
            yield Damage(path, "is gone; a released version is kept for ever: take it back from version control")
            continue
        try:
            schema, told = _schema(path), _json(folder / f"{number}.json")
        except ConfigurationError as error:
            file, _, what = str(error).partition(": ")
            yield Damage(Path(file), what)
            continue
        if told.get("schema") != _digest(schema):
            yield Damage(path, "was edited after its release; take it back from version control")
        records = told.get("records")
        yield from _wrong_records(folder, number, schema, records if isinstance(records, list) else [])


def _wrong_records(folder: Path, number: int, schema: Schema, values: list[Any]) -> Iterator[Damage]:
    wanted = {folder / f"{number}-{at}.bin": value for at, value in enumerate(values, 1)}
    for path in sorted(set(folder.glob(f"{number}-*.bin")) - wanted.keys()):
        yield Damage(
            path, f"is none of the records of {number}.json; remove it, or take that back from version control"
        )
    for path, value in wanted.items():
        try:
            if not path.exists():
                yield Damage(path, "is gone; take it back from version control")
            elif _decoded(path.read_bytes(), schema) != value:
                yield Damage(path, f"no longer decodes to what {number}.json says")
        except (Poison, ConfigurationError) as error:
            yield Damage(path, f"no longer decodes: {error}")
        except OSError as error:
            yield Damage(path, f"cannot be read: {error.strerror}")


def _decoded(raw: bytes, schema: Schema) -> Any:
    """The record as it lies on the wire. Raises Poison when this version of the runtime cannot read it."""
    written = codec.writer(schema)
    if not raw.startswith(framing.single_object(written.fingerprint)):
        raise Poison("unknown_schema", f"its first bytes do not name schema {written.fingerprint.hex()}")
    return _plain(codec.decode(raw, written))


def _plain(value: Any) -> Any:
    """Fields as JSON holds them; bytes as Avro writes them there, a character a byte."""
    match value:
        case bytes():
            return value.decode("latin-1")
        case (str(), inner):  # one of several records, with its name
            return _plain(inner)
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
    return value


def _write(folder: Path, version: int, schema: Schema) -> None:
    """The schema comes last: the version exists with it, and what a crash left before is written anew."""
    made = examples(schema)
    header = framing.single_object(codec.writer(schema).fingerprint)
    folder.mkdir(parents=True, exist_ok=True)
    for at, (_, raw) in enumerate(made, 1):
        (folder / f"{version}-{at}.bin").write_bytes(header + raw)
    told = {"schema": _digest(schema), "records": [_plain(value) for value, _ in made]}
    text = json.dumps(told, indent=2, ensure_ascii=False) + "\n"
    (folder / f"{version}.json").write_text(text, encoding="utf-8")
    path, beside = folder / f"{version}.avsc", folder / f"{version}.avsc.{os.getpid()}"
    if path.exists():
        raise FileExistsError(errno.EEXIST, "another release was faster", str(path))
    beside.write_text(codec.to_json(schema), encoding="utf-8")
    beside.replace(path)  # whole or not at all


def _digest(schema: Schema) -> str:
    """Of what the schema says; line ends and layout do not count."""
    return "sha256:" + hashlib.sha256(json.dumps(schema, ensure_ascii=False).encode()).hexdigest()


def _folders(project: Project) -> list[Path]:
    return sorted(path for path in (project.root / FOLDER).glob("*") if path.is_dir())


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.avsc") if path.stem.isdecimal())


def _retired(folder: Path) -> int:
    path = folder / RETIRED
    text = path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else "0"
    if not text.isdecimal():
        raise ConfigurationError(f"{path}: {text[:40]!r}; expected the number of a version")
    return int(text)


def _schema(path: Path) -> Schema:
    schema = _json(path)
    try:
        codec.writer(schema)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: is {error}; take it back from version control") from error
    return schema


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigurationError(f"{path}: is gone; take it back from version control") from error
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: is not JSON; take it back from version control") from error
    if not isinstance(found, dict):
        raise ConfigurationError(f"{path}: is no JSON object; take it back from version control")
    return found
