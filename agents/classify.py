"""jobs.submitted -> jobs.classified: what is this mail about, how urgent is it, and in which language?"""

from agents.rules.triage import Triage, triage
from farandole import Agent, Context
from schemas.jobs import EXCERPT, Classified, Submitted

agent = Agent("classify", concurrency=200, timeout="60s")


@agent.handle
async def classify(mail: Submitted, ctx: Context) -> Classified:
    """Decide from the subject and the beginning of the text; nothing outside the mail is looked at."""
    found = await ctx.ask(Triage, otherwise=lambda: triage(mail.sender, mail.subject, mail.text))
    return Classified(
        message_id=mail.message_id,
        category=found.category,
        urgency=found.urgency,
        language=found.language,
        why=found.why,
        decided_by=ctx.decided_by,
        sender=mail.sender,
        subject=mail.subject,
        excerpt=mail.text[:EXCERPT],
        received_at=mail.received_at,
    )
