"""Answer it, give it to a team, or leave it? A table says what each category gets; the exceptions are below it."""

from pydantic import BaseModel

from agents.rules.drafting import draft_of
from agents.rules.templates import PROMISES, TEXTS, Occasion
from schemas.jobs import Category, Decision, Draft, Enriched, Order, Team, Urgency

#: Nobody waits for an answer to these.
IGNORED = {
    Category.SPAM: "spam",
    Category.NEWSLETTER: "written to many",
    Category.AUTO_REPLY: "written by a machine",
}

#: Who takes a category when it is not answered here, or when the answer promises that somebody will.
TEAMS = {
    Category.ORDER_STATUS: Team.SUPPORT,
    Category.REFUND: Team.BILLING,
    Category.COMPLAINT: Team.CARE,
    Category.INVOICE: Team.BILLING,
    Category.TECHNICAL: Team.SUPPORT,
    Category.SALES: Team.SALES,
    Category.LEGAL: Team.LEGAL,
    Category.JOB_APPLICATION: Team.PEOPLE,
    Category.THANKS: Team.CARE,
    Category.PHISHING: Team.SECURITY,
    Category.EMPTY: Team.SUPPORT,
    Category.OTHER: Team.SUPPORT,
}

#: What an answer says when it speaks of an order, and when it needs none.
_ABOUT_AN_ORDER = {
    Category.ORDER_STATUS: Occasion.STATUS,
    Category.REFUND: Occasion.REFUND,
    Category.INVOICE: Occasion.INVOICE,
}
_OF_ITSELF = {
    Category.COMPLAINT: Occasion.SORRY,
    Category.JOB_APPLICATION: Occasion.APPLICATION,
    Category.THANKS: Occasion.THANKS,
    Category.EMPTY: Occasion.EMPTY,
}


class Action(BaseModel, frozen=True):
    """The answer to "what do we do with it?"."""

    decision: Decision
    why: str
    draft: Draft | None = None
    team: Team | None = None


def decide(mail: Enriched) -> Action:
    """What becomes of a mail, and why."""
    if reason := IGNORED.get(mail.category):
        return Action(decision=Decision.IGNORE, why=reason)
    language = "en" if mail.category is Category.EMPTY and mail.language == "und" else mail.language
    if mail.urgency is Urgency.HIGH:
        return _route(mail, "urgent: a person answers")
    if occasion := _OF_ITSELF.get(mail.category):
        return _reply(mail, occasion, language, None, f"an answer to: {mail.category}")
    if mail.category in _ABOUT_AN_ORDER:
        return _about_an_order(mail, _ABOUT_AN_ORDER[mail.category])
    return _route(mail, f"people answer: {mail.category}")


def _about_an_order(mail: Enriched, occasion: Occasion) -> Action:
    """Answer when it is clear which of the sender's own orders is meant; ask a customer; leave the rest to people."""
    own = mail.history.orders if mail.history else []
    named = [order for order in own if order.number in mail.entities.orders]
    if len(named) == 1:
        return _reply(mail, occasion, mail.language, named[0], f"the sender's own order {named[0].number}")
    if named:
        return _route(mail, "names several orders")
    if mail.entities.orders:
        return _route(mail, f"order {mail.entities.orders[0]} is not known to be the sender's")
    return _reply(mail, Occasion.WHICH_ORDER, mail.language, None, "no order is named")


def _reply(mail: Enriched, occasion: Occasion, language: str, order: Order | None, why: str) -> Action:
    if language not in TEXTS[occasion]:
        return _route(mail, f"no answer at hand in language {language}")
    draft = draft_of(mail, occasion, language, order)
    team = TEAMS[mail.category] if occasion in PROMISES else None
    return Action(decision=Decision.REPLY, why=why, draft=draft, team=team)


def _route(mail: Enriched, why: str) -> Action:
    return Action(decision=Decision.ROUTE, why=why, team=TEAMS.get(mail.category, Team.SUPPORT))
