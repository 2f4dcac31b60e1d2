"""What ends a stack, and what ends while it starts: signals, kills, owners that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from farandole.stack.status import Condition
from tests.eventually import eventually
from tests.integration.stack.checkouts import Checkout, NewCheckout, kill_group

OWNER = """
import sys
from pathlib import Path
from farandole.stack.stack import Stack

with Stack(Path(sys.argv[1])).running(wipe=sys.argv[2] == "wipe"):
    print("up", flush=True)
    sys.stdin.read()
"""


def owner(checkout: Checkout, word: str) -> subprocess.Popen[str]:
    """A program that owns the checkout's stack until its input ends."""
    program = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(checkout.stack.data), word],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout and program.stdout.readline() == "up\n"
    return program


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl_c", "sigterm"])
def test_a_signal_during_up_leaves_no_process(checkout: Checkout, number: signal.Signals) -> None:
    # Given an `up` that has started its first process
    command = checkout.start("up")
    eventually(checkout.processes, "a first process")

    # When it is asked to end, as a terminal does it: the whole group
    os.killpg(command.pid, number)
    command.communicate(timeout=60)

    # Then it ends with code 130, nothing runs, and nobody is told of a stack
    assert command.returncode == 130
    assert checkout.processes() == []
    assert not (checkout.stack.data / "endpoints.json").exists()


def test_a_ctrl_c_does_not_end_a_down_half_way(checkout: Checkout) -> None:
    # Given a `down` that is at work
    checkout.stack.up()
    command = checkout.start("down")
    eventually(lambda: not (checkout.stack.data / "endpoints.json").exists(), "a down at work")

    # When Ctrl-C is pressed
    os.killpg(command.pid, signal.SIGINT)
    command.communicate(timeout=60)

    # Then it ends its work
    assert command.returncode == 0
    assert checkout.processes() == []
    assert [one.state for one in checkout.stack.status().services] == [Condition.STOPPED, Condition.STOPPED]


@pytest.mark.parametrize("next_command", ["down", "up"])
def test_an_up_killed_half_way_is_cleaned_by_the_next_command(checkout: Checkout, next_command: str) -> None:
    # Given an `up` killed by SIGKILL when its processes had begun
    command = checkout.start("up")
    eventually(checkout.processes, "a first process")
    kill_group(command)
    orphans = set(checkout.processes())
    assert orphans

    # When the next command comes
    answer = checkout.run(next_command)

    # Then it succeeds, and none of the orphans is left
    assert answer.returncode == 0, answer.stderr
    assert not orphans & set(checkout.processes())
    assert len(checkout.daemons()) == (2 if next_command == "up" else 0)


def test_a_first_up_killed_while_it_formats_leaves_no_half_made_data(new_checkout: NewCheckout) -> None:
    # Given a first `up` killed while a data folder is in the making
    checkout = new_checkout()
    command = checkout.start("up")
    eventually(lambda: list(checkout.stack.data.glob("*.new")), "a data folder in the making")
    kill_group(command)

    # Then the next one makes it whole
    answer = checkout.run("up")
    assert answer.returncode == 0, answer.stderr
    assert checkout.stack.status().running
    assert list(checkout.stack.data.glob("*.new")) == []


def test_a_stack_ends_with_the_program_that_owns_it_even_by_sigkill(checkout: Checkout) -> None:
    # Given a program that owns a stack it wants wiped
    program = owner(checkout, "wipe")
    assert len(checkout.daemons()) == 3  # the watchdog is one

    # When the program is killed
    program.kill()
    program.communicate()

    # Then the watchdog stops the stack, removes its folder, and goes
    eventually(lambda: not checkout.processes(), "the end of all processes")
    eventually(lambda: not checkout.stack.data.exists(), "the end of the folder")


def test_a_program_stops_only_the_stack_it_started(checkout: Checkout) -> None:
    # Given a stack that is up, and a program that runs in it
    checkout.stack.up()
    owner(checkout, "keep").communicate("")

    # Then the stack is still there when the program has ended
    assert checkout.stack.status().running


def test_a_stack_that_somebody_ups_meanwhile_outlives_its_first_owner(checkout: Checkout) -> None:
    # Given a program that owns a stack, and a person who asks for the same one
    program = owner(checkout, "keep")
    assert checkout.run("up").returncode == 0

    # When the program ends
    program.communicate("")

    # Then the stack stays, without a watchdog
    assert checkout.stack.status().running
    assert len(checkout.daemons()) == 2
