"""What an error says to people: its type, its words, and the line of the user's own code that it came from."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

#: Whose frames say nothing to who wrote the handler: the runtime's, the libraries', the standard library's.
_FOREIGN = tuple(
    {Path(__file__).parent, *(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib"))}
)
_LIBRARIES = {"site-packages", "dist-packages"}  #: wherever they lie: an interpreter may have several


def _is_own(file: str) -> bool:
    """Whether the user wrote it."""
    path = Path(file)
    return _LIBRARIES.isdisjoint(path.parts) and not any(path.is_relative_to(folder) for folder in _FOREIGN)


def _place(error: BaseException) -> str:
    """File and line of the innermost frame that is neither ours nor a library's; "" when there is none."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def error_text(error: BaseException) -> str:
    """For people, bounded: the type says what the words alone do not."""
    place = _place(error)
    try:
        return f"{type(error).__name__}: {error}"[:1900] + (f" ({place})" if place else "")
    except Exception:  # noqa: BLE001  a user's exception may not even have a text
        return type(error).__name__
