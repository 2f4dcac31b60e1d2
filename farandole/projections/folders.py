"""Projections as folders of SQL: found, read and checked for what must be there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from farandole.errors import ConfigurationError
from farandole.project import Project

#: Always there, and folded first: what `Client` and the command line read. A project may bring its own version.
CORE = "job_state"

_TABLE = re.compile(r"^\s*CREATE\s+TABLE\s+IF\s+NOT\s+EXISTS\s+(\w+)", re.IGNORECASE | re.MULTILINE)
_VIEW = re.compile(r"^\s*CREATE\s+(?:OR\s+REPLACE\s+)?VIEW\s+(\w+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Projection:
    """The tables, how they are folded from `new_events`, and the views people read."""

    name: str
    folder: Path | None  #: None: known from the database alone
    tables: str
    fold: str
    views: str = ""

    @property
    def hash(self) -> str:
        """Of what decides the rows; another hash means that the tables must be refolded."""
        return _hash(self.tables, self.fold)

    @property
    def views_hash(self) -> str:
        return _hash(self.views)

    @property
    def table_names(self) -> list[str]:
        return _TABLE.findall(self.tables)

    @property
    def view_names(self) -> list[str]:
        return _VIEW.findall(self.views)

    @property
    def where(self) -> str:
        """What errors in its files are told with."""
        return self.name if self.folder is None else str(self.folder)

    def text(self, file: str) -> str:
        """Of `tables.sql`, `fold.sql` or `views.sql`."""
        return {"tables.sql": self.tables, "fold.sql": self.fold, "views.sql": self.views}[file]


def discover(project: Project | None) -> list[Projection]:
    """The project's projections and the packaged job_state, in the order in which they are folded.

    Raises ConfigurationError naming the folder or file that is missing or wrong.
    """
    found = {CORE: packaged() / CORE}
    if project and project.projections.is_dir():
        folders = (folder for folder in project.projections.iterdir() if folder.is_dir())
        found |= {folder.name: folder for folder in folders if folder.name[0] not in "._"}
    names = sorted(found, key=lambda name: (name != CORE, name))
    return [read(found[name]) for name in names]


def packaged() -> Path:
    """The folder of the projections that come with farandole: in the wheel, or beside a checkout."""
    package = Path(__file__).parents[1]
    wheel = package / "_projections"
    return wheel if wheel.is_dir() else package.parent / "projections"


def read(folder: Path) -> Projection:
    """The projection in `folder`. Raises ConfigurationError naming what is missing."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", folder.name):
        raise ConfigurationError(f"projection {folder}: expected a name of lower-case letters, digits and _")
    texts = {}
    for file in ("tables.sql", "fold.sql", "views.sql"):
        try:
            texts[file] = (folder / file).read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
        except FileNotFoundError:
            texts[file] = ""
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"{folder / file}: expected text in UTF-8; byte {error.start} is none") from error
        if "\0" in texts[file]:
            raise ConfigurationError(f"{folder / file}: expected SQL without NUL bytes")
        if not texts[file].strip() and file != "views.sql":
            raise ConfigurationError(f"projection {folder.name}: {folder / file} is missing or empty")
    projection = Projection(folder.name, folder, texts["tables.sql"], texts["fold.sql"], texts["views.sql"])
    if not projection.table_names:
        raise ConfigurationError(f"{folder / 'tables.sql'}: expected at least one CREATE TABLE IF NOT EXISTS")
    if "new_events" not in projection.fold:
        raise ConfigurationError(f"{folder / 'fold.sql'}: expected a statement that reads new_events")
    return projection


def _hash(*texts: str) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()[:16]
