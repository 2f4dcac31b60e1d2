"""What a call costs, against sums made by hand; and that no call costs more than what was reserved for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from genai_prices import Usage as Tokens
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from farandole.errors import ConfigurationError
from farandole.models.pricing import HIDDEN_TOKENS, Prices
from farandole.models.values import Usage

(ANTHROPIC,) = [provider for provider in get_snapshot().providers if provider.id == "anthropic"]
MODELS = [model.id for model in ANTHROPIC.models]
OWN = """
[house]
input = 1.0
output = 4
cache_read = 0.05
cache_write = 1.5

[plain]
input = 0.3
output = 0.7

["claude-haiku-5-5"]
input = 7
output = 9
"""


@pytest.fixture
def own(tmp_path: Path) -> Prices:
    (tmp_path / "prices.toml").write_text(OWN, encoding="utf-8")
    return Prices(tmp_path / "prices.toml")


@pytest.mark.parametrize(
    ("model", "usage", "micro"),
    [
        # haiku: 0.1 in, 0.5 out, 0.01 read, 0.125 written; sonnet: 2, 10, 0.1, 2.5 dollars a million
        ("claude-haiku-5-5", Usage(1000, 200), 100 + 100),
        ("claude-haiku-5-5", Usage(1000, 200, 3000, 400), 100 + 100 + 30 + 50),
        ("claude-haiku-5-5", Usage(0, 0, 3000), 30),
        ("claude-sonnet-5-5", Usage(1000, 200, 3000, 400), 2000 + 2000 + 300 + 1000),
        # above 100,000 tokens of input, cached ones counted, each of them costs five times as much
        ("claude-haiku-5-5", Usage(100_000, 10), 10_000 + 5),
        ("claude-haiku-5-5", Usage(100_010, 10), 50_005 + 25),
        ("claude-haiku-5-5", Usage(10, 10, 100_000), 5 + 25 + 5_000),
        ("claude-haiku-5-5", Usage(10, 10, 0, 100_000), 5 + 25 + 62_500),
        # rounded up: a call is never free
        ("claude-haiku-5-5", Usage(1), 1),
        ("claude-haiku-5-5", Usage(11, 1), 2),
        ("claude-haiku-5-5", Usage(), 0),
        ("claude-haiku-5-5-20260101", Usage(1000), 100),
    ],
)
def test_a_call_costs_what_its_tokens_cost(model: str, usage: Usage, micro: int) -> None:
    found = Prices().cost(model, usage)
    assert (found, type(found)) == (micro, int)


@pytest.mark.parametrize("model", ["", "nobodys-model", "claude-haiku-99", "gpt-5", "anthropic/claude-haiku-5-5"])
def test_a_model_without_a_price_has_no_cost_and_no_ceiling(model: str) -> None:
    """Case M5. The id must be one of the API's: a prefix of some gateway is not guessed away."""
    assert Prices().cost(model, Usage(1, 1)) is None
    assert Prices().ceiling(model, 1, 1) is None


def test_prices_of_ones_own_replace_the_whole_price_of_a_model(own: Prices) -> None:
    assert own.cost("house", Usage(1000, 200, 3000, 400)) == 1000 + 800 + 150 + 600
    assert own.cost("plain", Usage(10, 10, 10, 10)) == 3 + 7 + 3 + 6  # read as input, written at twice of it
    assert own.cost("claude-haiku-5-5", Usage(200_000, 1)) == 7 * 200_000 + 9
    assert own.cost("claude-sonnet-5-5", Usage(1000)) == 2000
    assert own.cost("house", Usage(0, 0, 1)) == 1


BOUND = st.integers(0, 1_200_000) | st.sampled_from([98_000, 98_001, 198_000, 198_001])


@settings(max_examples=60, deadline=None)
@given(data=st.data(), input_bytes=BOUND, max_tokens=st.integers(0, 200_000))
@pytest.mark.parametrize("model", [*MODELS, "house", "plain"])
def test_no_usage_within_its_bounds_costs_more_than_the_ceiling(
    tmp_path_factory: pytest.TempPathFactory, model: str, data: st.DataObject, input_bytes: int, max_tokens: int
) -> None:
    prices = Prices(_file(tmp_path_factory))
    bound = input_bytes + HIDDEN_TOKENS
    whole = data.draw(st.integers(0, bound) | st.just(bound))
    read = data.draw(st.integers(0, whole) | st.just(whole))
    written = data.draw(st.integers(0, whole - read) | st.just(whole - read))
    output = data.draw(st.integers(0, max_tokens) | st.just(max_tokens))
    usage = Usage(whole - read - written, output, read, written)
    cost, ceiling = prices.cost(model, usage), prices.ceiling(model, input_bytes, max_tokens)
    assert cost is not None
    assert ceiling is not None
    assert 0 <= cost <= ceiling


@pytest.mark.parametrize("model", [model for model in MODELS if model not in {"claude-2", "claude-v1"}])
def test_writes_that_are_kept_for_an_hour_stay_below_the_ceiling(model: str) -> None:
    tokens = 100_000 + HIDDEN_TOKENS
    kept = Tokens(input_tokens=tokens, cache_write_tokens=tokens, cache_write_1h_tokens=tokens, output_tokens=50)
    dollars = calc_price(kept, model_ref=model, provider_id="anthropic").total_price
    assert dollars * 1_000_000 <= (Prices().ceiling(model, 100_000, 50) or 0)


def test_the_ceiling_is_the_dearest_way_and_no_dearer() -> None:
    # 8,000 bytes and the hidden 2,000, written for an hour at 4 dollars a million; 100 out at 10
    assert Prices().ceiling("claude-sonnet-5-5", 8_000, 100) == 40_000 + 1_000
    # the bound of 100,001 is in the dearer tier: 1 dollar a million, 2.5 out
    assert Prices().ceiling("claude-haiku-5-5", 98_001, 100) == 100_001 + 250
    assert Prices().ceiling("claude-haiku-5-5", 98_000, 100) == 20_000 + 50


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "not valid TOML"),
        ("[m]\ninput = 1", "m.output: Field required"),
        ("[m]\ninput = -1\noutput = 1", "m.input: Input should be greater than or equal to 0"),
        ("[m]\ninput = 'much'\noutput = 1", "m.input: Input should be a valid decimal"),
        ("[m]\ninput = nan\noutput = 1", "m.input: Input should be a finite number"),
        ("[m]\ninput = 1\noutput = 1\ninptu = 2", "m.inptu: Extra inputs are not permitted"),
        ("m = 1", "m: Input should be a valid dictionary"),
    ],
)
def test_a_wrong_price_is_named_with_its_file_and_field(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        Prices(file)
    assert str(caught.value).startswith(f"FARANDOLE_PRICES: {file}: {said}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none.toml", "no such file"), (tmp_path, "cannot be read: Is a directory")):
        with pytest.raises(ConfigurationError) as caught:
            Prices(path)
        assert str(caught.value) == f"FARANDOLE_PRICES: {path}: {said}"


def test_prices_are_known_without_a_network_and_loaded_when_they_are_needed() -> None:
    code = """
import socket, sys
def never(*_):
    raise AssertionError("asked the network")
socket.socket.connect = socket.getaddrinfo = never
from farandole.models.pricing import Prices
from farandole.models.values import Usage
assert "genai_prices" not in sys.modules
print(Prices().cost("claude-haiku-5-5", Usage(1000)), Prices().cost("unheard-of", Usage(1)))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.returncode) == ("100 None\n", 0), ended.stderr


def _file(factory: pytest.TempPathFactory) -> Path:
    file = factory.getbasetemp() / "own-prices.toml"
    if not file.exists():
        file.write_text(OWN, encoding="utf-8")
    return file
