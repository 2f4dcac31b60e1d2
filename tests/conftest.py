"""Where pytest-xdist runs what, for `--dist loadgroup`."""

from __future__ import annotations

from pathlib import Path

import pytest

ACCEPTANCE = Path(__file__).parent / "acceptance"


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the marks in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep on one worker what must not, or need not, run beside each other.

    Tests that stop services share a stack that nobody else uses. Those of whole systems, of six processes each, come one
    after the other. Else a file's tests stay together, for what the file starts once.
    """
    if not hasattr(config, "workerinput"):
        return
    for item in items:
        if "farandole_private_stack" in getattr(item, "fixturenames", ()):
            group = "outages"
        elif ACCEPTANCE in item.path.parents:
            group = "acceptance"
        else:
            group = item.path.name
        item.add_marker(pytest.mark.xdist_group(group))
