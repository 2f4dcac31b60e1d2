"""jobs.classified -> jobs.enriched: which orders, amounts and people does it name, and do we know the sender?"""

from agents.rules import entities
from agents.rules.senders import address_of
from agents.shop.customers import Customers, open_customers
from farandole import Agent, Context
from schemas.jobs import Classified, Enriched, Entities

agent = Agent("enrich", concurrency=100, timeout="30s", resource=open_customers)


@agent.handle
async def enrich(mail: Classified, ctx: Context[Customers]) -> Enriched:
    """Read the text once more, for what it names, and ask the shop for the sender's history."""
    named = await ctx.ask(Entities, otherwise=lambda: entities.find(f"{mail.subject}\n{mail.excerpt}"))
    address = address_of(mail.sender)
    return Enriched(
        message_id=mail.message_id,
        category=mail.category,
        urgency=mail.urgency,
        language=mail.language,
        sender=mail.sender,
        subject=mail.subject,
        entities=named,
        history=await ctx.resource.history(address) if address else None,
        decided_by=ctx.decided_by,
    )
