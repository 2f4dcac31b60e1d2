"""Handlers in processes of their own: what comes back, what an end of a process costs, and that none is left."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from psutil import STATUS_ZOMBIE, NoSuchProcess, Process, pid_exists

from farandole import Agent, Context, Fail, Reject, Retry, load_agent
from farandole.envelope import Emitter, Envelope, begin
from farandole.errors import ConfigurationError, Poison, Stopped
from farandole.handling import Handling
from farandole.ids import trace_id_of_key
from farandole.outcome import DeadLettered, Emitted, Failed
from farandole.processes import HandlerDied, Processes
from farandole.testing import deliver
from tests.eventually import eventually
from tests.unit.computing import Odd, Solved, Task

HERE = Path(__file__).parent
ENVELOPE = Envelope(begin(trace_id_of_key("jobs", "a"), Emitter("client"), "jobs.Task"))


@pytest.fixture
def agent() -> Agent:
    return load_agent(HERE / "computing.py")


@pytest.fixture
async def processes(agent: Agent) -> AsyncIterator[Processes]:
    async with Processes(agent) as processes:
        yield processes
    assert processes.pids == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting() -> AsyncIterator[Processes]:
    """Processes for all calls that leave them as they were."""
    async with Processes(load_agent(HERE / "computing.py")) as processes:
        yield processes


async def solved(processes: Processes, do: str = "", number: int = 3, attempt: int = 1) -> Any:
    return await processes.run(Task(do=do, number=number), ENVELOPE.raw, attempt)


def running(pid: int) -> bool:
    try:
        return pid_exists(pid) and Process(pid).status() != STATUS_ZOMBIE
    except NoSuchProcess:
        return False


async def test_the_handler_runs_in_another_process_and_its_result_comes_back(processes: Processes) -> None:
    (result,) = await solved(processes, attempt=2)
    assert result == Solved(number=9, pid=result.pid, tried=2, by="rules")
    assert result.pid in processes.pids and result.pid != os.getpid()
    assert await solved(processes) == [result.model_copy(update={"tried": 1})], "the same process answers again"


async def test_calls_are_spread_over_so_many_processes_and_no_more(processes: Processes) -> None:
    results = await asyncio.gather(*(solved(processes, number=number) for number in range(20)))
    assert [result.number for (result,) in results] == [number**2 for number in range(20)]
    assert len({result.pid for (result,) in results}) == len(processes.pids) == 2


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("fail", Fail, "tired: after 3 tasks"),
        ("reject", Reject, "never"),
        ("retry", Retry, "later"),
        ("poison", Poison, "no number"),
        ("odd", Odd, "1 is not 2"),
        ("stubborn", Retry, "not now"),
        ("local", RuntimeError, "Local: made here"),
        ("sysexit", SystemExit, "3"),
        ("interrupt", RuntimeError, "KeyboardInterrupt: "),
        ("missing", FileNotFoundError, "[Errno 2] No such file: 'model.bin'"),
        ("recurse", RecursionError, "maximum recursion depth exceeded"),
    ],
)
async def test_an_error_comes_back_as_what_it_was_with_its_place(
    lasting: Processes, name: str, kind: type[BaseException], text: str
) -> None:
    with pytest.raises(kind) as raised:
        await solved(lasting, name)
    assert type(raised.value) is kind
    assert str(raised.value) == text
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert Path(frames[-1].filename).name == "computing.py"
    pid = lasting.pids
    await solved(lasting)
    assert lasting.pids == pid, "the process goes on"


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_runtime_reads_in_an_error_survives(lasting: Processes) -> None:
    with pytest.raises(Fail) as failed:
        await solved(lasting, "fail")
    assert (failed.value.reason, failed.value.detail) == ("tired", "after 3 tasks")
    with pytest.raises(Retry) as retried:
        await solved(lasting, "stubborn")
    assert retried.value.after == 0.25
    with pytest.raises(Poison) as poisoned:
        await solved(lasting, "poison")
    assert poisoned.value.cause == "invalid"


async def test_attempts_end_as_those_of_any_handler(agent: Agent, processes: Processes) -> None:
    handling = Handling(agent.wiring("jobs"), processes=processes, sleep=lambda _: asyncio.sleep(0))

    async def end(do: str) -> Any:
        return await handling.run(Task(do=do, number=3), ENVELOPE)

    emitted = await end("generator")
    assert isinstance(emitted, Emitted) and emitted.events[0].number == 9  # type: ignore[attr-defined]
    assert await end("fail") == Failed("tired")
    assert await end("reject") == DeadLettered("rejected", "")
    assert await end("unpicklable result") == DeadLettered("wrong_output", "")
    assert await end("sysexit") == DeadLettered("attempts", "", 2)
    odd = await end("odd")
    assert odd == DeadLettered("attempts", "", 2)
    assert odd.error.startswith("Odd: 1 is not 2 (computing.py:"), "names the line of the handler"
    killed = await end("kill")
    assert killed.error.startswith("HandlerDied: the process of the handler was killed by SIGKILL")
    again = await end("kill once")
    assert isinstance(again, Emitted) and again.attempts == 2


@pytest.mark.parametrize(("do", "words"), [("exit 3", "ended with code 3"), ("kill", "was killed by SIGKILL")])
async def test_a_process_that_ends_fails_its_own_attempt_and_is_replaced(
    processes: Processes, do: str, words: str
) -> None:
    other = asyncio.ensure_future(solved(processes))
    with pytest.raises(HandlerDied, match=words):
        await solved(processes, do)
    assert (await other)[0].number == 9
    results = await asyncio.gather(*(solved(processes) for _ in range(6)))
    assert all(result.number == 9 for (result,) in results)


async def test_the_end_of_a_process_is_noticed_while_what_it_forked_lives_on(
    processes: Processes, tmp_path: Path
) -> None:
    with pytest.raises(HandlerDied, match="ended with code 4"):
        await solved(processes, f"fork {tmp_path / 'pid'}")
    forked = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert running(forked)
    os.kill(forked, signal.SIGKILL)


async def test_an_idle_process_that_was_killed_costs_no_attempt(processes: Processes) -> None:
    (first,) = await solved(processes)
    os.kill(first.pid, signal.SIGKILL)
    await asyncio.to_thread(eventually, lambda: processes.pids == [], "its end was noticed")
    (second,) = await solved(processes)
    assert second.pid != first.pid


async def test_an_attempt_that_takes_too_long_ends_its_process(agent: Agent, processes: Processes) -> None:
    (first,) = await solved(processes)
    agent.timeout = 0.2
    try:
        with pytest.raises(TimeoutError, match=r"longer than 0\.2 s"):
            await solved(processes, "hang")
    finally:
        agent.timeout = 30
    await asyncio.to_thread(eventually, lambda: not running(first.pid), "the process ended")
    (second,) = await solved(processes)
    assert second.pid != first.pid


async def test_waiting_for_a_free_process_does_not_use_up_the_timeout(agent: Agent) -> None:
    agent.cpu, agent.timeout = 1, 0.5
    try:
        async with Processes(agent) as processes:
            hanging = [asyncio.ensure_future(solved(processes, "hang")) for _ in range(2)]
            assert (await solved(processes))[0].number == 9, "after a second, behind the two"
            assert {type(error) for error in await asyncio.gather(*hanging, return_exceptions=True)} == {TimeoutError}
    finally:
        agent.cpu, agent.timeout = 2, 30


async def test_a_call_that_is_given_up_ends_its_process(processes: Processes) -> None:
    (first,) = await solved(processes)
    call = asyncio.ensure_future(solved(processes, "hang"))
    for _ in range(3):
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.to_thread(eventually, lambda: not running(first.pid), "the process ended")


async def test_leaving_ends_busy_and_idle_processes(agent: Agent) -> None:
    async with Processes(agent) as processes:
        await asyncio.gather(*(solved(processes) for _ in range(10)))
        call = asyncio.ensure_future(solved(processes, "hang"))
        await asyncio.sleep(0)
        pids = processes.pids
    assert len(pids) == 2 and not any(map(running, pids))
    assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], HandlerDied)


async def test_what_the_handler_logs_is_in_the_log_of_the_parent(
    processes: Processes, caplog: pytest.LogCaptureFixture
) -> None:
    await solved(processes, "log", 12)
    assert [record.getMessage() for record in caplog.records] == ["computing 12", "with a traceback"]
    assert caplog.records[0].name == "farandole.handling"
    error = caplog.records[1].exc_info
    assert error and traceback.extract_tb(error[2])[-1].filename.endswith("computing.py")


async def test_what_the_handler_prints_does_not_mix_with_its_answers(
    agent: Agent, capfd: pytest.CaptureFixture[str]
) -> None:
    async with Processes(agent) as processes:
        assert await solved(processes, "print")
    assert capfd.readouterr().out == "to stdout\nfrom below\n"


async def test_signals_to_the_group_are_for_the_parent(processes: Processes) -> None:
    (first,) = await solved(processes)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(first.pid, number)
    assert (await solved(processes))[0].pid == first.pid


@pytest.mark.parametrize("do", ["", "hang"])
def test_no_process_outlives_a_parent_that_is_killed(do: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.orphans", do], stdout=subprocess.PIPE, text=True, cwd=HERE.parents[1]
    )
    assert parent.stdout
    with parent, parent.stdout:
        child = int(parent.stdout.readline())
        assert running(child)
        parent.kill()
        parent.wait()
        eventually(lambda: not running(child), "the process ended with its parent")


async def test_a_file_that_a_process_cannot_load_stops_the_worker(tmp_path: Path) -> None:
    file = tmp_path / "fragile.py"
    text = (HERE / "computing.py").read_text(encoding="utf-8")
    file.write_text(f"{text}\nif os.getppid() == {os.getpid()}:\n    raise ImportError('no libmodel.so')\n")
    agent = load_agent(file)
    with pytest.raises(Stopped, match=r"agent solve: no process .* could be started: ImportError: no libmodel\.so"):
        async with Processes(agent):
            pass
    file.write_text(f"{text}\nif os.getppid() == {os.getpid()}:\n    os._exit(9)\n")
    with pytest.raises(Stopped, match="ended with code 9"):
        async with Processes(agent):
            pass


async def test_classes_of_a_file_outside_any_project_cross_over_too(tmp_path: Path) -> None:
    file = tmp_path / "alone.py"
    file.write_text((HERE / "computing.py").read_text(encoding="utf-8"))
    agent = load_agent(file)
    assert agent.handler
    (reads,), (emits,) = agent.handler.reads, agent.handler.emits
    async with Processes(agent) as processes:
        (result,) = await processes.run(reads.model_validate({"number": 4}), ENVELOPE.raw, 1)
    assert type(result) is emits and result.model_dump()["number"] == 16


async def test_deliver_runs_the_handler_here(agent: Agent) -> None:
    emitted = await deliver(agent, Task(number=3))
    assert isinstance(emitted, Emitted)
    assert emitted.events[0].pid == os.getpid()  # type: ignore[attr-defined]


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="choose one"):
        Agent("solve", cpu=True, inline=True)
    with pytest.raises(ConfigurationError, match="resource"):
        Agent("solve", cpu=True, resource=lambda settings: None)  # type: ignore[arg-type,return-value]
    for cpu in (-1, "4", 1.5):
        with pytest.raises(ConfigurationError, match="expected True or a number"):
            Agent("solve", cpu=cpu)  # type: ignore[arg-type]
    asynchronous = Agent("solve", cpu=True)
    assert asynchronous.cpu == (os.cpu_count() or 1)

    async def solve(task: Task, ctx: Context) -> Solved: ...  # type: ignore[empty-body]

    line = solve.__code__.co_firstlineno
    with pytest.raises(ConfigurationError, match=rf"test_processes\.py:{line} solve: cpu is for plain functions"):
        asynchronous.handle(solve)
    with pytest.raises(ConfigurationError, match="load_agent"):
        Processes(Agent("solve", cpu=True))


def test_the_levels_of_the_log_are_those_of_the_parent(agent: Agent) -> None:
    logger = logging.getLogger("farandole")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:

        async def lines() -> list[str]:
            heard: list[str] = []
            handler = logging.Handler()
            handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
            logger.addHandler(handler)
            try:
                async with Processes(agent) as processes:
                    await solved(processes, "log")
            finally:
                logger.removeHandler(handler)
            return heard

        assert asyncio.run(lines()) == ["with a traceback"]
    finally:
        logger.setLevel(before)
