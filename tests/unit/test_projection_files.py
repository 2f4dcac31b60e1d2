"""The files of a projection, as editors write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from farandole.errors import ConfigurationError
from farandole.projections import read

TABLES = b"CREATE TABLE IF NOT EXISTS seen (\n  n int\n);\n"
FOLD = b"INSERT INTO seen SELECT count(*) FROM new_events;\n"


def written(folder: Path, tables: bytes, fold: bytes) -> Path:
    made = folder / "seen"
    made.mkdir()
    (made / "tables.sql").write_bytes(tables)
    (made / "fold.sql").write_bytes(fold)
    return made


def test_a_byte_order_mark_and_line_ends_of_windows_change_nothing(tmp_path: Path) -> None:
    found = read(written(tmp_path, b"\xef\xbb\xbf" + TABLES.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + FOLD))
    assert (found.tables.encode(), found.fold.encode(), found.table_names) == (TABLES, FOLD, ["seen"])


@pytest.mark.parametrize(
    ("added", "why"),
    [(b"-- caf\xe9\n", "expected text in UTF-8; byte 56 is none"), (b"-- \0", "expected SQL without NUL bytes")],
)
def test_what_is_no_text_is_told_with_its_file(added: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"seen/fold\.sql: {why}"):
        read(written(tmp_path, TABLES, FOLD + added))
