"""jobs.submitted -> jobs.classified: what is this mail about, how urgent is it, and in which language?"""

from functools import partial

from agents.rules.triage import Triage, triage
from farandole import Agent, Context
from schemas.jobs import EXCERPT, Category, Classified, Submitted

agent = Agent("classify", concurrency=200, timeout="60s")


@agent.handle
async def classify(mail: Submitted, ctx: Context) -> Classified:
    """Decide from the subject and the beginning of the text; nothing outside the mail is looked at."""
    rules = triage(mail.sender, mail.subject, mail.text)
    found = await ctx.ask(
        Triage,
        "classify.md",
        model="cheap",
        fallback=["drafting"],
        check=partial(consistent, rules),
        otherwise=lambda: rules,
        sender=mail.sender,
        subject=mail.subject,
        text=mail.text[:EXCERPT],
    )
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


def consistent(rules: Triage, found: Triage) -> None:
    """What headers prove is no matter of judgement: a machine's mail is one whatever it says of itself."""
    if rules.category in (Category.AUTO_REPLY, Category.EMPTY) and found.category is not rules.category:
        raise ValueError(f"category is {found.category}, but the mail is {rules.category}: {rules.why}")
