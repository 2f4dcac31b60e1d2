"""How `farandole run` ends when it cannot begin, when a process of several dies, and when it is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from farandole.errors import ExitCode
from tests.eventually import eventually


def command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "pyproject.toml").write_text("[tool.farandole]\n")
    return subprocess.Popen(
        [sys.executable, "-m", "farandole", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_folder_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    for name, code, told in (
        ("agents", ExitCode.USAGE, "is a folder; expected agent files, such as agents/*.py"),
        ("agents/none.py", ExitCode.NOT_FOUND, "no such file"),
    ):
        with command(tmp_path, "run", name) as started:
            _, err = started.communicate(timeout=60)
        assert (started.returncode, told in err) == (code, True), err


@pytest.mark.parametrize(
    ("end", "how", "code"),
    [
        ("os._exit(9)", "ended with code 9", ExitCode.STOPPED),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL", ExitCode.STOPPED),
        ("raise KeyError", "ended with code 3", ExitCode.CONFIGURATION),
    ],
)
def test_a_process_that_dies_is_named_with_its_end(tmp_path: Path, end: str, how: str, code: ExitCode) -> None:
    # Given two processes of which the first to come dies, and the other waits for its end
    (tmp_path / "agent.py").write_text(
        "import os, pathlib, signal, time\n"
        "try:\n    pathlib.Path('first').touch(exist_ok=False)\n"
        "except FileExistsError:\n    time.sleep(60)\n"
        f"{end}\n"
    )
    with command(tmp_path, "run", "--processes", "2", "agent.py") as started:
        _, err = started.communicate(timeout=60)
    assert started.returncode == code, err
    assert len([line for line in err.splitlines() if line.startswith("error: process ") and how in line]) == 1


def test_a_second_signal_ends_several_processes_as_interrupted(tmp_path: Path) -> None:
    # Given processes that leave at their second signal
    (tmp_path / "agent.py").write_text(
        "import os, pathlib, signal, time\n"
        "def asked(*_):\n    signal.signal(signal.SIGTERM, signal.SIG_DFL)\n    mark('asked')\n"
        "def mark(word):\n    pathlib.Path(f'{word}-{os.getpid()}').touch()\n"
        "signal.signal(signal.SIGTERM, asked)\nmark('ready')\ntime.sleep(60)\n"
    )
    with command(tmp_path, "run", "--processes", "2", "agent.py") as started:
        for word in ("ready", "asked"):
            eventually(lambda word=word: len(list(tmp_path.glob(f"{word}-*"))) == 2, word)  # type: ignore[misc]
            started.send_signal(signal.SIGINT)
        _, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (ExitCode.INTERRUPTED, "")


@pytest.mark.parametrize("after", [0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4])
def test_a_ctrl_c_is_quiet_whenever_it_comes(tmp_path: Path, after: float) -> None:
    (tmp_path / "agent.py").write_text("import time\ntime.sleep(60)\n")
    program = (  # it tells of the first import of main(), which comes behind its handler
        "import sys, farandole.__main__ as m\n"
        "class First:\n    def find_spec(*_):\n        sys.meta_path.pop(0)\n        print(flush=True)\n"
        "sys.meta_path.insert(0, First)\nm.main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, "run", "agent.py"], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdout and started.stdout.readline() == "\n"
        with pytest.raises(subprocess.TimeoutExpired):
            started.wait(after)
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
    assert (started.returncode, out, err) == (ExitCode.INTERRUPTED, "", "")


#: A Ctrl-C where Python reports what is raised and goes on.
SWALLOWED = {
    "weakref": "class Gone: pass\ngone = Gone()\nheld = weakref.ref(gone, interrupt)\ndel gone\n",
    "__del__": "class Gone:\n    __del__ = interrupt\nGone()\n",
}


@pytest.mark.parametrize("where", SWALLOWED)
@pytest.mark.parametrize("when", ["while an agent is loaded", "while a command works"])
def test_a_ctrl_c_that_python_swallows_is_heard(tmp_path: Path, when: str, where: str) -> None:
    (tmp_path / "agent.py").write_text(
        "import os, signal, time, weakref\n"
        "def interrupt(_):\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(0)\n"
        f"{SWALLOWED[where]}time.sleep(600)\n"
    )
    as_command = "cli.main = lambda: __import__('agent'); " if when == "while a command works" else ""
    program = f"from farandole import cli, __main__ as m; {as_command}m.main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "run", "agent.py"], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as started:  # fmt: skip
        try:
            out, err = started.communicate(timeout=60)
        finally:
            started.kill()
    assert (started.returncode, out, err) == (ExitCode.INTERRUPTED, "", "")
