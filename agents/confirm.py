"""jobs.acted -> jobs.done, or jobs.failed: may this decision leave the house?"""

from collections.abc import Callable
from enum import StrEnum

from agents.rules import checks
from farandole import Agent, BlockingContext, Fail
from schemas.jobs import Acted, Done


class Refusal(StrEnum):
    """Why a decision is stopped: the closed list of this agent's reasons, checked in this order."""

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

agent = Agent("confirm", inline=True, reasons=Refusal)


@agent.handle
def confirm(acted: Acted, ctx: BlockingContext) -> Done:
    """Let the decision pass when no check objects; the first objection ends the job."""
    for refusal, objection in CHECKS.items():
        if detail := objection(acted):
            raise Fail(refusal, detail)
    return Done(
        message_id=acted.message_id,
        category=acted.category,
        decision=acted.decision,
        decided_by=ctx.decided_by,
        draft=acted.draft,
        team=acted.team,
    )
