"""A projection to start from: a small working example, or a copy of one that comes with farandole, under its own name."""

from __future__ import annotations

import re
from pathlib import Path

from farandole.errors import ExitCode, FarandoleError
from farandole.project import Project
from farandole.projections.beside import RESERVED
from farandole.projections.folders import CORE, Projection, discover, packaged, read

_PACKAGE = Path(__file__).parents[1]
_EXAMPLE = _PACKAGE / "templates" / "projections" / "example"

#: Characters. A name of Postgres has at most 63; a copy's tables and views add to it.
LONGEST = 30

_OBJECT = re.compile(r"^CREATE (?:TABLE|VIEW) (\w+)", re.MULTILINE)

#: What Postgres takes for a word of its own where a table's name stands (its key words that are reserved).
_SQL_WORDS = (
    "all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation column"
    " concurrently constraint create cross current_catalog current_date current_role current_schema current_time"
    " current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze from"
    " full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit localtime"
    " localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references returning right"
    " select session_user similar some symmetric system_user table tablesample then to trailing true union unique user using"
    " variadic verbose when where window with"
)


def shipped() -> list[str]:
    """The projections that come with farandole to be copied. The core is not among them: every project has it."""
    return sorted(folder.name for folder in packaged().iterdir() if folder.is_dir() and folder.name != CORE)


def create(project: Project, name: str, like: str | None = None) -> Path:
    """Write `projections/NAME`, which folds as it stands. Returns the folder.

    Its tables and views are those of the example, or of the shipped projection `like`, named after `name`. Raises
    FarandoleError for a name that cannot be used or is taken, and for a projection that is not shipped; nothing was written
    then.
    """
    if like is not None and like not in shipped():
        raise FarandoleError(f"no shipped projection {like!r}; there are {', '.join(shipped())}", ExitCode.USAGE)
    target = project.projections / _usable(name)
    if target.exists():
        raise FarandoleError(f"{target} is there already; nothing was written", ExitCode.USAGE)
    source = read(_EXAMPLE if like is None else packaged() / like)
    names = _renamed(source, name)
    if taken := sorted(set(names.values()) & _taken(project)):
        raise FarandoleError(
            f"projection {name}: there is a table or view {taken[0]!r} already; choose another name", ExitCode.USAGE
        )
    target.mkdir(parents=True)
    for file, text in (("tables.sql", source.tables), ("fold.sql", source.fold), ("views.sql", source.views)):
        (target / file).write_text(_with_names(text, names), encoding="utf-8")
    return target


def _usable(name: str) -> str:
    if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{LONGEST - 1}}}", name):
        raise FarandoleError(
            f"{name!r} is no name of a projection; expected at most {LONGEST} lower-case letters, digits and _, a letter first",
            ExitCode.USAGE,
        )
    if name in _SQL_WORDS.split():
        raise FarandoleError(f"{name!r} is a word of SQL and cannot name a table; choose another name", ExitCode.USAGE)
    return name


def _renamed(source: Projection, name: str) -> dict[str, str]:
    """The tables and views of `source`, and what they are called in a projection `name`."""
    if name == source.name:
        return {found: found for found in _objects(source)}
    own = re.compile(rf"{source.name}(?=_|$)")
    return {found: own.sub(name, found) if own.match(found) else f"{name}_{found}" for found in _objects(source)}


def _with_names(text: str, names: dict[str, str]) -> str:
    """The text with every such word replaced, in comments too."""
    return re.sub(rf"\b(?:{'|'.join(map(re.escape, names))})\b", lambda found: names[found[0]], text)


def _taken(project: Project) -> set[str]:
    """Names in use: of the runtime's own tables and views, and of the project's projections."""
    files = (_PACKAGE / "migrations" / "sql").glob("*.sql")
    own = RESERVED.union(*(_OBJECT.findall(file.read_text(encoding="utf-8")) for file in files))
    return own.union(*(_objects(projection) for projection in discover(project)))


def _objects(projection: Projection) -> list[str]:
    return [*projection.table_names, *projection.view_names]
