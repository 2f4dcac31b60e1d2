"""Which failures of a step with if_unknown="hold" leave it to a person."""

import asyncio

import pytest

from farandole.errors import ConfigurationError, Fail, Reject, Retry
from farandole.steps.claims import Claim, Step
from farandole.steps.effects import Begun, failed

BEGUN = Begun(Claim(Step("e", "act", "mail", "t"), "owner", 0, hold=True), "key")


@pytest.mark.parametrize("error", [Retry("later"), Reject("never"), Fail("no"), ConfigurationError("SMTP_URL: …")])
def test_what_says_that_it_has_not_happened_is_run_again(error: Exception) -> None:
    assert failed(BEGUN, error).state == "failed"


@pytest.mark.parametrize("error", [OSError("lost"), TimeoutError(), asyncio.CancelledError()])
def test_what_does_not_say_so_is_held(error: BaseException) -> None:
    assert failed(BEGUN, error).state == "held"
