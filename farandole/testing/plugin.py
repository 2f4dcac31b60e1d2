"""The pytest plug-in: the project comes first on sys.path, and the fixtures for the services of tests are there.

It is loaded in every pytest run of an environment that holds farandole, so it imports nothing that is slow.
"""

from __future__ import annotations

import pytest

from farandole.errors import ConfigurationError
from farandole.project import find_project
from farandole.testing.stack import (
    farandole_namespace,
    farandole_outages,
    farandole_private_stack,
    farandole_registry,
    farandole_settings,
    farandole_stack,
)

__all__ = [
    "farandole_namespace",
    "farandole_outages",
    "farandole_private_stack",
    "farandole_registry",
    "farandole_settings",
    "farandole_stack",
]


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before the first conftest.py, so that it may write `from schemas.jobs import …`."""
    try:
        project = find_project(early_config.rootpath)
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from None
    if project:
        project.activate()
