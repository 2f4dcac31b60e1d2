"""jobs.classified -> jobs.enriched: which orders, amounts and people does it name, and do we know the sender?"""

from functools import partial

from agents.rules import entities
from agents.rules.reading import Reading
from agents.rules.senders import address_of
from agents.shop.customers import Customers, open_customers
from farandole import Agent, Context
from schemas.jobs import Classified, Enriched

agent = Agent("enrich", concurrency=100, timeout="30s", resource=open_customers)


@agent.handle
async def enrich(mail: Classified, ctx: Context[Customers]) -> Enriched:
    """Read the text once more, for what it names, and ask the shop for the sender's history."""
    text = f"{mail.subject}\n{mail.excerpt}"
    read = await ctx.ask(
        Reading,
        "enrich.md",
        model="cheap",
        fallback=["drafting"],
        check=partial(stands_there, text),
        otherwise=lambda: Reading(entities=entities.find(text)),
        mail=mail,
    )
    address = address_of(mail.sender)
    return Enriched(
        message_id=mail.message_id,
        category=mail.category,
        urgency=mail.urgency,
        language=mail.language,
        sender=mail.sender,
        subject=mail.subject,
        entities=read.entities,
        history=await ctx.resource.history(address) if address else None,
        decided_by=ctx.decided_by,
        summary=read.summary,
    )


def stands_there(text: str, read: Reading) -> None:
    """An order, a link or an address that is not in the mail was made up."""
    named = read.entities
    for word in (*named.orders, *named.urls, *named.addresses):
        if word.lower() not in text.lower():
            raise ValueError(f"{word!r} does not stand in the mail; name only what does, letter by letter")
