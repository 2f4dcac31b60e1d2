"""What model calls cost, in micro-dollars: known prices, or the project's own. The only module that imports genai_prices."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from farandole.errors import ConfigurationError
from farandole.models.configured import MICRO
from farandole.models.values import Usage

#: Tokens that the API may add to a request by itself: its words for tools and for structured output. The most that is told
#: of a model are 530 (https://docs.anthropic.com/en/docs/tool-use-pricing-and-tokens); this is far above.
HIDDEN_TOKENS = 2_000
#: A price that changes while a call is under way is foreseen for so long.
_AHEAD = timedelta(days=1)

_PROVIDER = "anthropic"


class Price(BaseModel):
    """Dollars for a million tokens, from a file of the project's own."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)
    cache_read: Decimal | None = Field(None, ge=0)  #: None: as `input`
    cache_write: Decimal | None = Field(None, ge=0)  #: None: twice `input`, which nobody charges more than

    def cost(self, usage: Usage) -> Decimal:
        """Dollars."""
        read = self.input if self.cache_read is None else self.cache_read
        write = 2 * self.input if self.cache_write is None else self.cache_write
        return (
            usage.input_tokens * self.input
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
            + usage.output_tokens * self.output
        ) / 1_000_000


class Prices:
    """Prices of models by their ids, dated ones too (`claude-haiku-5-5-20260101`). Never asks the network.

    Args:
        file: TOML with a table a model, such as `["claude-haiku-5-5"]`, `input = 0.1`, `output = 0.5`; it wins over what is
            known. Raises ConfigurationError that names what is wrong in it.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._own: Mapping[str, Price] = _read(file) if file else {}

    def cost(self, model: str, usage: Usage) -> int | None:
        """Micro-dollars, rounded up; None where no price of the model is known. Cache writes are those for five minutes."""
        if own := self._own.get(model):
            return _micro(own.cost(usage))
        whole = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        return _known(
            model,
            input_tokens=whole,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )

    def ceiling(self, model: str, input_bytes: int, max_tokens: int) -> int | None:
        """An upper bound for a request of so many bytes: no token has less than one, all of them at the dearest rate, and the
        output is as long as it may be. It holds for what is in the request itself, not for files that it only names."""
        tokens = input_bytes + HIDDEN_TOKENS
        if own := self._own.get(model):
            kinds = Usage(tokens, max_tokens), Usage(0, max_tokens, tokens), Usage(0, max_tokens, 0, tokens)
            return max(_micro(own.cost(usage)) for usage in kinds)
        most = {"input_tokens": tokens, "output_tokens": max_tokens}
        kinds_of: tuple[dict[str, int], ...] = (
            {},
            {"cache_read_tokens": tokens},
            {"cache_write_tokens": tokens},
            {"cache_write_tokens": tokens, "cache_write_1h_tokens": tokens},
        )
        found = [_known(model, ahead=ahead, **most, **kind) for kind in kinds_of for ahead in (False, True)]
        return max((cost for cost in found if cost is not None), default=None)


def _known(model: str, *, ahead: bool = False, **tokens: int) -> int | None:
    """The library counts input whole: what was read from the cache or written to it is part of `input_tokens`."""
    known = _model(model)
    if known is None:
        return None
    from genai_prices import Usage as Tokens

    info, provider = known
    if ahead and not isinstance(info.prices, list):  # its price does not change
        return None
    at = datetime.now(UTC) + _AHEAD if ahead else None
    try:
        return _micro(info.calc_price(Tokens(**tokens), provider, genai_request_timestamp=at).total_price)
    except ValueError:  # it has no price for tokens of this kind
        return None


@lru_cache(maxsize=200)
def _model(model: str) -> tuple[Any, Any] | None:
    """The library's model and provider; finding them takes longer than the sum."""
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    try:
        found = calc_price(Tokens(input_tokens=1, output_tokens=1), model_ref=model, provider_id=_PROVIDER)
    except LookupError:
        return None
    return found.model, found.provider


def _micro(dollars: Decimal) -> int:
    return math.ceil(dollars * MICRO)


def _read(file: Path) -> dict[str, Price]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"FARANDOLE_PRICES: {file}: no such file") from None
    except OSError as error:
        raise ConfigurationError(f"FARANDOLE_PRICES: {file}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"FARANDOLE_PRICES: {file}: not valid TOML: {error}") from error
    found: dict[str, Price] = {}
    for model, table in tables.items():
        try:
            found[model] = Price.model_validate(table)
        except ValidationError as error:
            detail = error.errors()[0]
            field = ".".join(str(part) for part in (model, *detail["loc"]))
            expected = "expected dollars for a million tokens, in input, output, cache_read and cache_write"
            raise ConfigurationError(f"FARANDOLE_PRICES: {file}: {field}: {detail['msg']}; {expected}") from None
    return found
