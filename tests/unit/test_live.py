"""Rows of a live pipe go out while it is open; what its reading ended with comes after them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from farandole.cli.live import HANDFUL, handfuls


async def test_rows_are_given_while_the_pipe_is_still_open() -> None:
    more = threading.Event()

    def pipe() -> Iterator[int]:
        yield from (1, 2)
        more.wait()
        yield 3

    given = handfuls(pipe())
    assert await anext(given) == [1, 2]
    more.set()
    assert [rows async for rows in given] == [[3]]


async def test_a_full_pipe_is_taken_in_large_handfuls_and_in_order() -> None:
    given = [rows async for rows in handfuls(range(3 * HANDFUL))]
    assert [row for rows in given for row in rows] == list(range(3 * HANDFUL))
    assert max(map(len, given)) == HANDFUL


async def test_what_reading_raised_comes_after_the_rows_before_it() -> None:
    def pipe() -> Iterator[int]:
        yield 1
        raise ValueError("line 2")

    given = handfuls(pipe())
    assert await anext(given) == [1]
    with pytest.raises(ValueError, match="line 2"):
        await anext(given)


WAITS = """
import asyncio
from farandole.cli.live import handfuls
from farandole.sources import rows

async def main() -> None:
    async for some in handfuls(rows("-")):
        print(len(some), flush=True)

try:
    asyncio.run(main())
except KeyboardInterrupt:
    raise SystemExit(130) from None
"""


@pytest.mark.timeout(30)
def test_an_interrupt_ends_the_process_though_the_pipe_stays_open() -> None:
    end, pipe = os.pipe()
    command = [sys.executable, "-c", WAITS]
    with subprocess.Popen(command, stdin=end, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        os.write(pipe, b'{"a": 1}\n')
        assert child.stdout
        assert child.stdout.readline() == b"1\n"
        child.send_signal(signal.SIGINT)
        _, complaints = child.communicate()
    os.close(end)
    os.close(pipe)
    assert (child.returncode, complaints) == (130, b"")
