"""How the long-running processes log: a line an entry on stderr, for people or (FARANDOLE_LOG_JSON) for programs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from farandole.safetext import clean


class Lines(logging.Formatter):
    """`12:04:31.250 warning worker  attempt_failed agent=…`; whatever data is in it cannot command the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback, where there is one, indented below it."""
        at = datetime.fromtimestamp(record.created).astimezone()
        text = f"{at:%H:%M:%S}.{at.microsecond // 1000:03d} {record.levelname.lower():<7} {clean(record.getMessage())}"
        if record.exc_info:
            text += "".join(f"\n    {clean(line)}" for line in self.formatException(record.exc_info).splitlines())
        return text


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, error."""

    def format(self, record: logging.LogRecord) -> str:
        """The object as text."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=True)


def set_up(*, as_json: bool = False, level: int = logging.INFO) -> None:
    """Send the log to stderr. Called once, by the command that runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("farandole").setLevel(level)
