"""Where each setting's value comes from; for those who wonder why it is so. Secrets do not leave this module."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, SecretStr

from farandole.project import Project
from farandole.settings import ENDPOINTS_FILE, PREFIX, Settings, load_settings


@dataclass(frozen=True, slots=True)
class Origin:
    """One setting: `variable` sets it in the environment, `value` is safe to show."""

    variable: str
    value: str
    origin: str  #: environment, pyproject, stack or default
    meaning: str


def origins(project: Project | None, environment: Mapping[str, str] = os.environ) -> list[Origin]:
    """Every setting as it is now. Raises ConfigurationError as `load_settings` does."""
    settings = load_settings(project)
    stack = _stack(project)
    rows: list[Origin] = []
    for name, field in Settings.model_fields.items():
        variable = str(field.validation_alias or PREFIX + name.upper())
        written = {variable, name} & (project.table.keys() if project else set())
        if any(key.upper() == variable.upper() for key in environment):
            origin = "environment"
        elif written:
            origin = "pyproject"
        elif name in stack:
            origin = "stack"
        else:
            origin = "default"
        rows.append(Origin(variable, _shown(settings, name), origin, field.description or ""))
    return rows


def _stack(project: Project | None) -> set[str]:
    if project is None or not (project.data / ENDPOINTS_FILE).exists():
        return set()
    return set(json.loads((project.data / ENDPOINTS_FILE).read_text(encoding="utf-8")))


def _shown(settings: Settings, name: str) -> str:
    """The value as text, tables as the JSON that sets them; of a URL its place alone, without password or query."""
    value = getattr(settings, name)
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if text is None:
        return ""
    if isinstance(text, dict | BaseModel):
        set_ = settings.model_dump(mode="json", include={name}, exclude_defaults=True).get(name)
        return json.dumps(set_, ensure_ascii=False) if set_ else ""
    if isinstance(text, str) and (isinstance(value, SecretStr) or "://" in text):
        return masked(text)
    return str(text).lower() if isinstance(text, bool) else str(text)


def masked(url: str) -> str:
    """A URL without what may be secret in it.

    >>> masked("postgresql://ann:secret@db:5432/app?password=secret")
    'postgresql://ann:***@db:5432/app'
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "***"
    if not parts.scheme or "@" in (parts.hostname or ""):
        return "***"  # libpq also takes "host=… password=…"
    user = f"{parts.username}{':***' if parts.password else ''}@" if parts.username else ""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return urlunsplit((parts.scheme, f"{user}{host}{port}", parts.path, "", ""))
