"""A person decides about steps: looks at them, releases what is held, has some run anew with a redrive."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from farandole import postgres
from tests.commands import ROOT, environment
from tests.eventually import eventually
from tests.integration.steps.conftest import Post
from tests.integration.steps.person import Person, job

RECEIPT = '{"word": "w", "number": 7}'


@pytest.fixture
def person(post: Post) -> Iterator[Person]:
    person = Person(post)
    with person.attending():
        yield person


def hold(person: Person) -> None:
    """A step is held: its worker was killed after it had posted; another one is done."""
    post = person.post
    post.submit([("w", "kill-after")])
    assert post.supervise(post.dead, TEST_HOLD="1") == 1
    with post.agent(TEST_HOLD="1"):
        post.submit([("good", "")])
        eventually(lambda: post.said() == ["good"], "the good one")
    person.letters(1)


def test_a_held_step_comes_first_and_is_shown_with_its_key(person: Person) -> None:
    hold(person)
    shown = person.types("steps", "list")
    assert shown.index("held") < shown.index("done")
    assert "nobody knows whether it has happened" in shown
    assert [one["state"] for one in person.json("steps", "list")] == ["held", "done"]
    assert [one["state"] for one in person.json("steps", "list", "--state", "done")] == ["done"]
    assert [one["state"] for one in person.json("steps", "list", job("w"))] == ["held"]
    assert person.json("steps", "list", "--agent", "nobody") == []
    (whole,) = person.json("steps", "show", job("good"), "post")
    assert whole["result"] == {"word": "good", "number": 2}
    assert (whole["begun"], whole["calls"]) == (1, [])
    posted = dict(person.post.posted())
    assert whole["key"] == posted["good"]
    assert posted["w"] in person.types("steps", "show", job("w")[:18], "post")
    assert "post of poster" in person.types("steps", "show", job("w"), "pots", code=4)
    assert "no job" in person.types("steps", "show", "0123456", "post", code=4)


def test_what_has_happened_is_recorded_and_not_done_again(person: Person) -> None:
    hold(person)
    assert "--again if it has not" in person.types("steps", "release", job("w"), "post", code=2)
    assert "no JSON" in person.types("steps", "release", job("w"), "post", "--done", "NaN", code=2)
    large = '"' + "x" * 65_536 + '"'
    assert "at most 65,536" in person.types("steps", "release", job("w"), "post", "--done", large, code=2)
    assert person.post.rows("state") == [("held",), ("done",)]
    told = person.types("steps", "release", job("w"), "post", "--done", RECEIPT, "--reason", "seen \x1b[2J in the box")
    command = told.split("dead letter: farandole ")[1].split()
    assert "it was so before" in person.types("steps", "release", job("w"), "post", "--done", RECEIPT)
    assert "another result" in person.types("steps", "release", job("w"), "post", "--done", "1", code=1)
    assert "has run" in person.types("steps", "release", job("w"), "post", "--again", code=1)
    shown = person.types("steps", "show", job("w"), "post")
    assert "seen \\x1b[2J in the box" in shown
    assert "\x1b" not in shown
    person.types(*command, "--yes")
    with person.post.agent():
        eventually(lambda: sorted(person.post.said()) == ["good", "w"], "the job to go on")
    assert len(person.post.posted()) == 2
    assert {fields["place"] for fields in person.post.log.fields("jobs.said") if fields["word"] == "w"} == {7}


def test_what_has_not_happened_runs_again_under_the_same_key(person: Person) -> None:
    hold(person)
    assert "may run again" in person.types("steps", "release", job("w"), "post", "--again")
    assert person.json("steps", "release", job("w"), "post", "--again")["changed"] is False
    person.types("dead", "redrive", "--yes")
    with person.post.agent():
        eventually(lambda: sorted(person.post.said()) == ["good", "w"], "the job to go on")
    assert len([key for word, key in person.post.posted() if word == "w"]) == 2
    assert len({key for word, key in person.post.posted() if word == "w"}) == 1


def test_a_step_that_somebody_is_at_is_not_released_and_one_whose_worker_is_gone_is(person: Person) -> None:
    post = person.post
    with post.agent() as command:
        post.submit([("w", "slow:600")])
        eventually(lambda: post.rows("state") == [("leased",)], "the lease")
        assert "is under way" in person.types("steps", "release", job("w"), "post", "--again", code=1)
        command.kill()
    ended = "SELECT lease_until < now() FROM step WHERE state = 'leased'"
    with postgres.connect(post.settings) as connection:
        eventually(lambda: connection.execute(ended).fetchone() == (True,), "the end of the lease")
    person.types("steps", "release", job("w"), "post", "--done", RECEIPT)
    assert post.rows("state, owner") == [("done", None)]


def reject(person: Person, *words: str) -> None:
    """Their steps are done, and their events dead letters all the same."""
    with person.post.agent():
        person.post.submit([(word, "reject-later") for word in words])
        eventually(lambda: len(person.post.dead()) == len(words), "the dead letters")
    person.letters(len(words))


def test_a_redrive_replays_finished_steps_but_for_those_that_are_to_be_forgotten(person: Person) -> None:
    reject(person, "a", "b")
    assert "those there are: post" in person.types("dead", "redrive", "--yes", "--forget", "pots", code=4)
    dry = person.types("dead", "redrive", "--dry-run", "--forget", "post")
    assert "to run anew: 2 of step post" in dry
    assert person.post.rows() == [("done", 1)] * 2
    person.types("dead", "redrive", "--yes", "--job", job("a"), "--forget", "post")
    person.types("dead", "redrive", "--yes")
    with person.post.agent():
        eventually(lambda: sorted(person.post.said()) == ["a", "b"], "both")
    words = [word for word, _ in person.post.posted()]
    assert sorted(words) == ["a", "a", "b"]
    assert len(set(person.post.posted())) == 3, "another key for another post"
    assert sorted(person.post.rows("begun, generation")) == [(1, 0), (2, 1)]


def test_nothing_is_forgotten_nor_given_back_while_somebody_is_at_it(person: Person) -> None:
    reject(person, "w")
    with postgres.connect(person.post.settings) as connection:
        connection.execute(
            "UPDATE step SET state = 'leased', lease_until = now() + interval '1 hour' WHERE name = 'post'"
        )
    assert "is under way" in person.types("dead", "redrive", "--yes", "--forget", "post", code=1)
    assert person.post.rows("state, generation") == [("leased", 0)]
    assert person.post.log.read("poster.wake") == []


def test_a_redrive_killed_between_forgetting_and_giving_back_is_made_good_by_the_next(person: Person) -> None:
    reject(person, "w")
    command = [sys.executable, "-m", "tests.integration.steps.person", "post"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(person.post.settings), stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"standing still\n"
        process.kill()
    assert person.post.rows("state, generation") == [("forgotten", 1)]
    assert person.post.log.read("poster.wake") == []
    assert "1 redriven" in person.types("dead", "redrive", "--yes", "--forget", "post")
    assert person.post.rows("state, generation") == [("forgotten", 1)]
    with person.post.agent():
        eventually(lambda: person.post.said() == ["w"], "the job to go on")
    assert "no dead letters" in person.types("dead", "redrive", "--yes", "--forget", "post")
    assert len(set(person.post.posted())) == len(person.post.posted()) == 2
