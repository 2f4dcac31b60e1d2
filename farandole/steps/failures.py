"""Failures of steps that are for good: recorded with the run, and raised again, the same, when the handling is repeated."""

from __future__ import annotations

import json

from farandole.errors import Fail, Poison, Reject
from farandole.models.errors import FINAL


class StepNameTaken(Poison):
    """Two steps of one handling have one name: a replay could not tell their results apart."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "step_name", f"a step named {name!r} is there already in this handling; give each its own name"
        )


class TooManySteps(Poison):
    """A handling has more steps than are kept."""

    def __init__(self, most: int) -> None:
        super().__init__("steps", f"more than {most:,} steps in one handling; split the work into events")


class OutcomeUnknown(Poison):
    """A call was begun and nobody knows whether it has happened; with if_unknown="hold" a person decides."""

    def __init__(self, step: str, error: str) -> None:
        super().__init__(
            "held", f"step {step}: {error}; look, then `farandole steps release`, then `farandole dead redrive`"
        )


def describe(error: BaseException) -> str | None:
    """A failure for good as JSON; None when it may go better the next time."""
    match error:
        case Fail():
            found = {"kind": "fail", "reason": error.reason, "detail": error.detail}
        case Reject():
            found = {"kind": "reject", "reason": str(error)}
        case Poison():
            found = {"kind": "poison", "cause": error.cause, "message": str(error)}
        case _:
            return None
    return json.dumps(found)


def rebuilt(text: str) -> Exception:
    """The failure that `describe` described."""
    found = json.loads(text)
    match found["kind"]:
        case "fail":
            return Fail(found["reason"], found["detail"])
        case "reject":
            return Reject(found["reason"])
        case _ if found["cause"] in FINAL:
            return FINAL[found["cause"]](found["message"])
        case _:
            return Poison(found["cause"], found["message"])
