"""jobs.acted -> jobs.done, or jobs.failed: was this decision one that may leave the house?"""

from agents.rules.refusals import Refusal, objection
from farandole import Agent, Fail
from schemas.jobs import Acted, Done

agent = Agent("confirm", inline=True, reasons=Refusal)


@agent.handle
def confirm(acted: Acted) -> Done:
    """Let the decision pass when no check objects; the first objection ends the job."""
    if found := objection(acted):
        raise Fail(*found)
    return Done(
        message_id=acted.message_id,
        category=acted.category,
        decision=acted.decision,
        decided_by=acted.decided_by,
        draft=acted.draft,
        team=acted.team,
        sent_as=acted.sent_as,
    )
