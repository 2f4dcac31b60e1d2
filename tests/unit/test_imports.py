"""Each module of the projection can be the first that is imported: none leans on another one having been loaded before."""

from __future__ import annotations

import subprocess
import sys

from tests.commands import ROOT

#: One process imports them all, each into an interpreter without our modules; those of others stay loaded.
EACH = """
import importlib, sys
from pathlib import Path
folders = [Path("farandole") / name for name in ("projections", "projector", "retention")]
for path in sorted(path for folder in folders for path in folder.glob("*.py")):
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    for loaded in [one for one in sys.modules if one.split(".")[0] == "farandole"]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name, error)
"""


def test_every_module_of_the_projection_can_be_imported_first() -> None:
    done = subprocess.run([sys.executable, "-c", EACH], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr[-500:]) == (0, "", "")
