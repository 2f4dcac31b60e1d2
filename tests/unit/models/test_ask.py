"""One decision, by models one after another: what each ending of a reply leads to."""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from farandole.errors import Reject
from farandole.models.ask import Answer, Question, answer
from farandole.models.errors import BadRequest, InvalidOutput, ModelError, NoCredit, Overloaded, Refused, Truncated
from farandole.models.shape import shape_of
from farandole.models.tools import Tools
from farandole.models.values import Reply, Request, Usage


class Verdict(BaseModel):
    label: Literal["refund", "other"]


GOOD = '{"label": "refund"}'


def said(text: str, reason: str = "end_turn") -> Reply:
    return Reply("m", [{"type": "thinking", "thinking": GOOD}, {"type": "text", "text": text}], reason, Usage())


def used(name: str, given: Any) -> Reply:
    return Reply("m", [{"type": "tool_use", "id": "t1", "name": name, "input": given}], "tool_use", Usage())


class Recorded:
    """Replies as a ledger gives them; the requests are kept."""

    def __init__(self, *replies: Reply | ModelError) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []

    async def call(self, request: Request) -> Reply:
        self.requests.append(request)
        found = self.replies.pop(0)
        if isinstance(found, ModelError):
            raise found
        return found


def question(*models: str, structured: bool = True, **more: Any) -> Question[Verdict]:
    api: Callable[[str, dict[str, Any]], Any] = lambda model, schema: schema if structured else None  # noqa: E731
    return Question(shape_of(Verdict), "Judge.", "a mail", models or ("m",), api, **{"max_tokens": 10, **more})


async def test_the_stable_part_is_cached_and_the_schema_goes_with_it() -> None:
    calls = Recorded(said(GOOD))
    assert await answer(question(), calls) == Answer(Verdict(label="refund"), "m")
    body = calls.requests[0].body
    assert body["system"] == [{"type": "text", "text": "Judge.", "cache_control": {"type": "ephemeral"}}]
    assert body["output_config"]["format"]["schema"]["required"] == ["label"]


async def test_a_model_without_structured_output_reads_the_schema_in_its_prompt() -> None:
    calls = Recorded(said(f"Here: ```json\n{GOOD}\n```"))
    await answer(question(structured=False), calls)
    assert "output_config" not in calls.requests[0].body
    assert '"label"' in calls.requests[0].body["system"][0]["text"] or "'label'" in str(calls.requests[0].body)


async def test_a_wrong_reply_is_shown_to_its_model_once() -> None:
    calls = Recorded(said('{"label": "x"}'), said(GOOD))
    assert (await answer(question(), calls)).value.label == "refund"
    _, shown, asked = calls.requests[1].body["messages"]
    assert (shown["content"], "label" in asked["content"]) == ('{"label": "x"}', True)
    with pytest.raises(InvalidOutput):
        await answer(question(), Recorded(said("?"), said("?"), said(GOOD)))


async def test_an_answer_that_breaks_a_rule_of_the_agent_is_repaired_and_a_decision_of_it_is_not() -> None:
    def never_refund(found: Verdict) -> None:
        if found.label == "refund":
            raise ValueError("refunds are over")

    calls = Recorded(said(GOOD), said('{"label": "other"}'))
    assert (await answer(question(check=never_refund), calls)).value.label == "other"
    assert "refunds are over" in calls.requests[1].body["messages"][-1]["content"]

    def rejects(found: Verdict) -> None:
        raise Reject("no")

    with pytest.raises(Reject):
        await answer(question(check=rejects), Recorded(said(GOOD)))


async def test_a_reply_that_was_cut_is_asked_for_once_more_with_twice_the_room_even_if_it_parses() -> None:
    """Case M4."""
    calls = Recorded(said(GOOD, "max_tokens"), said(GOOD))
    await answer(question(), calls)
    assert [request.max_tokens for request in calls.requests] == [10, 20]
    with pytest.raises(Truncated):
        await answer(question(), Recorded(said(GOOD, "max_tokens"), said(GOOD, "max_tokens")))


async def test_the_next_model_is_asked_where_one_has_no_answer() -> None:
    calls = Recorded(said("no", "refusal"), Overloaded("full"), said(GOOD))
    assert (await answer(question("a", "b", "c"), calls)).model == "c"


async def test_rules_answer_where_all_models_have_ended_for_good() -> None:
    rules = lambda: Verdict(label="other")  # noqa: E731
    found = await answer(question(otherwise=rules), Recorded(said("", "refusal")))
    assert found == Answer(Verdict(label="other"), None)


@pytest.mark.parametrize("error", [NoCredit("x"), BadRequest("x")])
async def test_no_rule_hides_a_mistake_of_configuration(error: ModelError) -> None:
    with pytest.raises(type(error)):
        await answer(question("a", "b", otherwise=lambda: Verdict(label="other")), Recorded(error))


async def test_no_rule_answers_while_a_model_may_have_an_answer_later() -> None:
    calls = Recorded(Overloaded("full"), said("", "refusal"))
    with pytest.raises(Overloaded):
        await answer(question("a", "b", otherwise=lambda: Verdict(label="other")), calls)


async def test_without_rules_the_models_error_is_the_end() -> None:
    with pytest.raises(Refused):
        await answer(question(), Recorded(said("", "refusal")))


async def test_a_tools_result_is_part_of_the_conversation() -> None:
    async def look(number: int) -> dict[str, int]:
        """Looks up an order."""
        if number < 0:
            raise ValueError("there is no such order \ud800")
        return {"order": number}

    calls = Recorded(used("look", {"number": 7}), used("look", {"number": -1}), used("gone", {}), said(GOOD))
    await answer(question(tools=Tools([look])), calls)
    results = [message["content"][0] for message in calls.requests[-1].body["messages"][2::2]]
    assert results[0] == {"type": "tool_result", "tool_use_id": "t1", "content": '{"order": 7}'}
    assert [result.get("is_error") for result in results] == [None, True, True]
    assert "\ud800" not in results[1]["content"]


async def test_a_model_that_only_calls_tools_is_stopped() -> None:
    def look(number: int) -> str:
        """Looks up an order."""
        return ""

    with pytest.raises(InvalidOutput):
        await answer(question(tools=Tools([look])), Recorded(*[used("look", {"number": 1})] * 30))
