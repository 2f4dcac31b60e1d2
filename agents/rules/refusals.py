"""What no decision may be, in the order in which it is checked: before anything acts on it, and once more at the end."""

from collections.abc import Callable
from enum import StrEnum

from agents.rules import checks
from schemas.jobs import Acted


class Refusal(StrEnum):
    """Why a decision is stopped: the closed list of reasons."""

    INCOMPLETE = "incomplete"  #: a reply without a draft, a routing without a team
    NO_RECIPIENT = "no_recipient"  #: the sender's address cannot be read, so nobody would get the answer
    AUTOMATIC_SENDER = "automatic_sender"  #: an answer would reach a machine, or start a loop of two
    NEEDS_A_PERSON = "needs_a_person"  #: an answer to a matter that only people may answer
    CARD_NUMBER = "card_number"  #: the answer would repeat a payment card's number
    FOREIGN_LINK = "foreign_link"  #: the answer would carry a link that is not ours
    UNVERIFIED_ORDER = "unverified_order"  #: the answer speaks of an order that is not the sender's
    UNFILLED = "unfilled"  #: a gap of the template was left open
    TOO_LONG = "too_long"
    WRONG_LANGUAGE = "wrong_language"  #: the answer is in another language than the mail


CHECKS: dict[Refusal, Callable[[Acted], str | None]] = {
    Refusal.INCOMPLETE: checks.incomplete,
    Refusal.NO_RECIPIENT: checks.no_recipient,
    Refusal.AUTOMATIC_SENDER: checks.automatic_sender,
    Refusal.NEEDS_A_PERSON: checks.needs_a_person,
    Refusal.CARD_NUMBER: checks.card_number,
    Refusal.FOREIGN_LINK: checks.foreign_link,
    Refusal.UNVERIFIED_ORDER: checks.unverified_order,
    Refusal.UNFILLED: checks.unfilled,
    Refusal.TOO_LONG: checks.too_long,
    Refusal.WRONG_LANGUAGE: checks.wrong_language,
}


def objection(acted: Acted) -> tuple[Refusal, str] | None:
    """The first objection to a decision, with its detail; None when it may leave the house."""
    for refusal, check in CHECKS.items():
        if detail := check(acted):
            return refusal, detail
    return None
