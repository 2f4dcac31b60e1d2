"""jobs.enriched -> jobs.acted: answer it, give it to a team, or leave it?"""

from agents.rules.acting import Action, decide
from farandole import Agent, Context
from schemas.jobs import Acted, Enriched

agent = Agent("act", concurrency=200, timeout="60s")


@agent.handle
async def act(mail: Enriched, ctx: Context) -> Acted:
    """Decide what becomes of the mail, and draft the answer when it is to have one."""
    action = await ctx.ask(Action, otherwise=lambda: decide(mail))
    return Acted(
        message_id=mail.message_id,
        category=mail.category,
        urgency=mail.urgency,
        language=mail.language,
        decision=action.decision,
        why=action.why,
        decided_by=ctx.decided_by,
        draft=action.draft,
        team=action.team,
        known_orders=[order.number for order in mail.history.orders] if mail.history else [],
    )
