"""What an agent's file may say: the wiring comes from the annotations, and misuse fails at start with its line."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from pathlib import Path

import pytest

from farandole import Agent, BlockingContext, Context, Emitted, Event, load_agent
from farandole.contracts.deriving import topic_of
from farandole.errors import ConfigurationError
from farandole.retries import seconds
from farandole.testing import deliver


class Asked(Event, topic="jobs.asked", stage="asked"):
    text: str


class AlsoAsked(Event, topic="jobs.asked", stage="asked"):
    text: str


class Answered(Event, topic="jobs.answered", stage="answered"):
    text: str


class Shelved(Event, topic="jobs.shelved", stage="shelved"):
    text: str


def test_topics_and_types_come_from_the_annotations() -> None:
    agent = Agent("answer")

    @agent.handle
    async def answer(event: Asked | AlsoAsked, ctx: Context) -> list[Answered | Shelved] | None:
        return None

    wiring = agent.wiring("jobs")
    assert (wiring.topic, set(wiring.reads)) == ("jobs.asked", {"jobs.Asked", "jobs.AlsoAsked"})
    assert set(wiring.handler.emits) == {Answered, Shelved}
    assert {contract.topic for contract in wiring.emits.values()} == {
        "jobs.answered",
        "jobs.shelved",
        "jobs.failed",
        "jobs.dead_lettered",
    }


@pytest.mark.parametrize("returns", ["None", "Answered", "Answered | None", "list[Answered]", "tuple[Answered, ...]"])
def test_a_handler_returns_none_one_or_many(returns: str) -> None:
    agent = Agent("answer")
    scope = {"agent": agent, "Asked": Asked, "Answered": Answered}
    exec(f"@agent.handle\ndef answer(event: Asked) -> {returns}: ...", scope)
    assert agent.wiring("jobs").handler.emits == (() if returns == "None" else (Answered,))


MISUSES = {
    "async def f(event): ...": "no annotation for 'event'",
    "async def f(event: Asked): ...": "no annotation for 'return'",
    "async def f(event: str) -> None: ...": "reads 'str', which is no Event",
    "async def f(event: Asked) -> str: ...": "emits 'str', which is no Event",
    "async def f() -> None: ...": "found 0 parameters",
    "async def f(event: Asked, ctx: BlockingContext) -> None: ...": "an async handler's second parameter is a Context",
    "def f(event: Asked, ctx: Context) -> None: ...": "a plain handler's second parameter is a BlockingContext",
    "async def f(event: Asked, ctx: int) -> None: ...": "second parameter is a Context",
    "async def f(event: Unheard) -> None: ...": "annotation not found",
}


@pytest.mark.parametrize("source", MISUSES)
def test_misuse_fails_when_the_file_is_loaded_and_names_file_and_line(tmp_path: Path, source: str) -> None:
    file = tmp_path / "wrong.py"
    lines = [
        "from __future__ import annotations",
        "from farandole import Agent, BlockingContext, Context, Event",
        "",
        "class Asked(Event, topic='jobs.asked', stage='asked'):",
        "    text: str",
        "",
        "agent = Agent('wrong')",
        "",
        "",
        "",
        "@agent.handle",
        source,
    ]
    file.write_text("\n".join(lines))
    with pytest.raises(ConfigurationError) as caught:
        load_agent(file)
    assert MISUSES[source] in str(caught.value)
    assert f"{file}:11" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\n", "0 agents in this file"),
        ("from farandole import Agent\na = Agent('a')\nb = Agent('b')\n", "2 agents in this file"),
        ("from farandole import Agent\na = Agent('a')\n", "agent a has no handler"),
    ],
)
def test_a_file_holds_one_agent_with_a_handler(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "agent.py"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=expected):
        load_agent(file)


def test_types_of_two_topics_cannot_be_read_by_one_agent() -> None:
    agent = Agent("both")

    @agent.handle
    def both(event: Asked | Answered) -> None: ...

    with pytest.raises(ConfigurationError, match=r"reads one topic; its types lie on jobs\.answered, jobs\.asked"):
        agent.wiring("jobs")


def test_an_agent_has_one_handler_and_the_second_names_the_first() -> None:
    agent = Agent("twice")

    @agent.handle
    def first(event: Asked) -> None: ...

    with pytest.raises(ConfigurationError, match=r"has a handler already .*first"):

        @agent.handle
        def second(event: Asked) -> None: ...


@pytest.mark.parametrize("name", ["", "Upper", "with space", "ünder", "a" * 41, "1st", "a.b"])
def test_a_name_that_kafka_or_a_person_would_trip_over_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="agent name"):
        Agent(name)


def test_an_agent_called_like_the_flow_is_refused() -> None:
    agent = Agent("jobs")

    @agent.handle
    def handler(event: Asked) -> None: ...

    with pytest.raises(ConfigurationError, match="cannot be called like the flow"):
        agent.wiring("jobs")


def test_inline_is_for_plain_functions() -> None:
    agent = Agent("fast", inline=True)
    with pytest.raises(ConfigurationError, match="inline=True is for plain functions"):

        @agent.handle
        async def handler(event: Asked) -> None: ...


@pytest.mark.parametrize(("value", "expected"), [("250ms", 0.25), ("60s", 60), ("5m", 300), (1.5, 1.5), ("2 h", 7200)])
def test_durations_are_read(value: str | float, expected: float) -> None:
    assert seconds(value, "timeout") == expected


@pytest.mark.parametrize("value", ["", "60", "fast", "-1s", 0, -3.0])
def test_wrong_durations_say_what_was_expected(value: str | float) -> None:
    with pytest.raises(ConfigurationError, match="expected a duration such as"):
        seconds(value, "agent a: timeout")


def test_the_handler_stays_the_users_function_and_a_strict_checker_sees_a_wrong_return(tmp_path: Path) -> None:
    agent = Agent("same")

    def handler(event: Asked, ctx: BlockingContext) -> Answered:
        return Answered(text=event.text)

    assert agent.handle(handler) is handler
    file = tmp_path / "typed.py"
    file.write_text(
        "from farandole import Agent, Context, Event\n\n\n"
        "class A(Event, topic='jobs.a', stage='a'):\n    text: str\n\n\n"
        "class B(Event, topic='jobs.b', stage='b'):\n    text: str\n\n\n"
        "agent = Agent('typed')\n\n\n"
        "@agent.handle\nasync def typed(event: A, ctx: Context) -> B:\n    return A(text=event.text)\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert 'Incompatible return value type (got "A", expected "B")' in checked.stdout, checked.stdout + checked.stderr


async def test_a_class_of_an_agents_file_is_one_class_whether_loaded_or_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.farandole]\nflow = 'jobs'\n")
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "score.py").write_text(
        "from pydantic import BaseModel\nfrom farandole import Agent, Context, Event\n"
        "class Asked(Event, topic='jobs.asked', stage='asked'):\n    text: str\n"
        "class Scored(Event, topic='jobs.scored', stage='scored'):\n    score: float\n"
        "class Guess(BaseModel):\n    score: float\n"
        "agent = Agent('score')\n"
        "@agent.handle\nasync def score(event: Asked, ctx: Context) -> Scored:\n"
        "    guess = await ctx.ask(Guess, otherwise=lambda: Guess(score=0.5))\n    return Scored(score=guess.score)\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    loaded = load_agent(tmp_path / "stages" / "score.py")
    module = importlib.import_module("stages.score")
    assert loaded is module.agent
    outcome = await deliver(loaded, module.Asked(text="x"), answers={module.Guess: module.Guess(score=1)})
    assert outcome == Emitted([module.Scored(score=1)])


def test_an_unknown_option_of_an_agent_is_named() -> None:
    with pytest.raises(
        ConfigurationError, match="agent a: unknown option 'attemps'; expected concurrency, timeout, att"
    ):
        Agent("a", attemps=3)  # type: ignore[arg-type]


def test_an_unknown_class_argument_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown option 'topik'; expected topic, stage"):
        types.new_class("Typo", (Event,), {"topik": "jobs.typo"})


def test_a_topic_that_kafka_would_refuse_is_refused_at_start() -> None:
    class Odd(Event, topic="jobs.sco red/é", stage="odd"):
        text: str

    with pytest.raises(ConfigurationError, match=r"topic 'jobs\.sco red/é'; expected letters"):
        topic_of(Odd, "jobs")
