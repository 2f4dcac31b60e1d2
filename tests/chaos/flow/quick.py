"""jobs.sent -> jobs.sorted, and jobs.noted for every fifth: a pure, fast function."""

from farandole import Agent, BlockingContext, Reject
from tests.chaos.flow.events import Noted, Sent, Sorted
from tests.chaos.flow.ledger import Ledger

agent = Agent("quick", inline=True)
ledger = Ledger("quick")


@agent.handle
def sort(sent: Sent, ctx: BlockingContext) -> list[Sorted | Noted]:
    with ledger.handling(ctx) as name:
        if sent.work == "quick.reject":
            raise Reject("as it was told to")
        out: list[Sorted | Noted] = [Sorted(seq=sent.seq, work=sent.work, handling=name)]
        return [*out, Noted(seq=sent.seq, handling=name)] if sent.seq % 5 == 0 else out
