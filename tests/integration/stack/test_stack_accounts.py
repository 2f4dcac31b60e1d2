"""Who runs the stack: root, in folders that nobody else may enter, and a normal user with a home of its own."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from farandole.stack import places
from tests.integration.stack.checkouts import NewCheckout

#: A first start, and a look at what came of it.
PROGRAM = """
import os, sys
from pathlib import Path
from typing import Any
from farandole.stack.stack import Stack

stack = Stack(Path(sys.argv[1]))
first = stack.up(owner_pid=os.getpid())
import psycopg
print(psycopg.connect(first.database_url).execute("SELECT current_user").fetchone()[0], stack.status().running)
stack.down(wipe=True)
"""


def interpreter(uid: int) -> tuple[str, dict[str, str]]:
    """A Python this user can run, with the packages of ours: ours, or the system's of the same version."""
    wanted = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = os.pathsep.join(entry for entry in sys.path if entry.endswith("site-packages"))
    root = str(Path(__file__).parents[3])
    identity: dict[str, Any] = {"user": uid} if os.geteuid() == 0 else {}
    for candidate in (sys.executable, f"/usr/bin/{wanted}", f"/usr/local/bin/{wanted}"):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([candidate, "-c", ""], check=True, cwd="/", capture_output=True, **identity)
            return candidate, {"PYTHONPATH": os.pathsep.join([root, packages])}
    raise AssertionError(f"no {wanted} that uid {uid} can run")


def share(cache: Path) -> None:
    """What a stack without a registry takes from the shared cache: the jars, and of the caches of many Javas those that were
    used last, ours among them."""
    shared = places.cache_folder()
    shutil.copytree(shared / "jars", cache / "jars")
    for archive in sorted(shared.glob("kafka-*.aot"), key=lambda file: file.stat().st_mtime)[-3:]:
        shutil.copy2(archive, cache)


def test_a_normal_user_starts_a_stack(new_checkout: NewCheckout, tmp_path: Path) -> None:
    # Given a user without privileges, with a home and a project of its own and the jars in its cache
    root = new_checkout().root
    home = root / "home"
    share(home / ".cache" / "farandole")
    account = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", str(account.pw_uid), root], check=True)
    python, environment = interpreter(account.pw_uid)

    # When it starts a stack and uses it
    identity: dict[str, Any] = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    answer = subprocess.run(
        [python, "-c", PROGRAM, str(root / ".farandole")],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(home), **environment},
        **(identity if os.geteuid() == 0 else {}),
    )

    # Then all of it works
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["farandole", "True"]


if os.geteuid() == 0:  # another user cannot hide a folder from itself

    def test_root_starts_a_stack_where_postgres_may_not_go_and_its_data_is_nobody_elses(
        new_checkout: NewCheckout,
    ) -> None:
        # Given root's checkout in a folder that only root may enter
        checkout = new_checkout()
        checkout.root.chmod(0o700)

        # When the stack is started
        stack = checkout.stack
        endpoints = stack.up()

        # Then it works, and the folder is as closed as it was
        with psycopg.connect(endpoints.database_url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert checkout.root.stat().st_mode & 0o777 == 0o700

        # And the files with the password are root's alone, and Postgres refuses who does not know it
        for name in ("postgres.password", "endpoints.json", "stack.json"):
            assert (stack.data / name).stat().st_mode & 0o077 == 0, name
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(endpoints.database_url.replace(":", ":wrong", 2).replace("postgresql:wrong", "postgresql:"))

        # And wiping removes the data where it really lies
        place = (stack.data / "postgres").resolve()
        assert not place.is_relative_to(checkout.root)
        stack.down(wipe=True)
        assert not place.exists()
