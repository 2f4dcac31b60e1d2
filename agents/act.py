"""jobs.enriched -> jobs.acted: answer it, give it to a team, or leave it? An answer is sent, once, if no rule objects."""

from functools import partial

from agents.mail.outgoing import Mailer, open_mailer
from agents.rules.acting import Action, decide
from agents.rules.refusals import objection
from agents.rules.senders import address_of
from farandole import Agent, Context
from schemas.jobs import Acted, Enriched

agent = Agent("act", concurrency=200, timeout="60s", resource=open_mailer)


@agent.handle
async def act(mail: Enriched, ctx: Context[Mailer | None]) -> Acted:
    """Decide what becomes of the mail, draft the answer when it is to have one, and send it."""
    action = await ctx.ask(
        Action,
        "act.md",
        model="drafting",
        check=partial(may_leave, mail),
        otherwise=lambda: decide(mail),
        max_tokens=2000,
        mail=mail,
        address=address_of(mail.sender),
    )
    acted = decision_of(mail, action, ctx.decided_by)
    mailer, draft = ctx.resource, action.draft
    if mailer is None or draft is None or objection(acted):
        return acted

    async def send(key: str) -> str:
        return await mailer.send(draft, key, answers=mail.message_id)

    # Nobody can ask a mail server whether it has taken a mail: when that is not known, a person looks.
    return acted.model_copy(update={"sent_as": await ctx.once("mail", send, if_unknown="hold")})


def decision_of(mail: Enriched, action: Action, decided_by: str) -> Acted:
    """The event that says so; nothing is sent yet."""
    return Acted(
        message_id=mail.message_id,
        category=mail.category,
        urgency=mail.urgency,
        language=mail.language,
        decision=action.decision,
        why=action.why,
        decided_by=decided_by,
        draft=action.draft,
        team=action.team,
        known_orders=[order.number for order in mail.history.orders] if mail.history else [],
    )


def may_leave(mail: Enriched, action: Action) -> None:
    """What a model has decided must pass the rules that `confirm` has, and answer the sender alone."""
    if action.draft and action.draft.to != address_of(mail.sender):
        raise ValueError(f"draft.to is {action.draft.to!r}; expected the sender's address {address_of(mail.sender)!r}")
    if found := objection(decision_of(mail, action, "a model")):
        raise ValueError(f"{found[0]}: {found[1]}")
