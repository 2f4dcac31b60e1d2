"""The events of inbox triage, in the order in which a job meets them.

    jobs.submitted -> classify -> jobs.classified -> enrich -> jobs.enriched -> act -> jobs.acted
        -> confirm -> jobs.done

An event is a fact: it says what was found or decided, and carries what the next agent needs, since that agent reads
this one topic and nothing else. The long part, the mail's text, therefore travels two hops and no further: whole in
Submitted, its first `EXCERPT` characters in Classified; whatever comes later works from what was found in it.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from farandole import Event, personal

#: Characters of a mail's text that travel beyond classification. Of 6,046 public mails 97 % are shorter.
EXCERPT = 10_000


class Category(StrEnum):
    """What a mail is about."""

    ORDER_STATUS = "order_status"
    REFUND = "refund"
    COMPLAINT = "complaint"
    INVOICE = "invoice"
    TECHNICAL = "technical"
    SALES = "sales"
    LEGAL = "legal"
    JOB_APPLICATION = "job_application"
    THANKS = "thanks"
    NEWSLETTER = "newsletter"  #: and mailing lists: written to many, nobody waits for an answer
    SPAM = "spam"
    PHISHING = "phishing"
    AUTO_REPLY = "auto_reply"  #: written by a machine: out of office, delivery failure
    EMPTY = "empty"
    OTHER = "other"

    __unknown__ = "other"  #: what a word of a newer version is read as: a person will read that mail


class Urgency(StrEnum):
    """How soon somebody should look."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"

    __unknown__ = "normal"


class Decision(StrEnum):
    """What becomes of a mail."""

    REPLY = "reply"
    ROUTE = "route"  #: to a team of people
    IGNORE = "ignore"  #: filed, no answer

    __unknown__ = "route"


class Team(StrEnum):
    """Who takes a mail that is routed."""

    SUPPORT = "support"
    BILLING = "billing"
    CARE = "care"
    LEGAL = "legal"
    PEOPLE = "people"
    SALES = "sales"
    SECURITY = "security"

    __unknown__ = "support"


class Part(BaseModel):
    """A record inside an event."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Entities(Part):
    """What the text names, as it stands there, each once and in order; at most 20 of a kind."""

    orders: list[str] = Field([], description="order numbers, such as A-10423")
    amounts: list[str] = []
    dates: list[str] = []
    phones: list[str] = personal([])
    urls: list[str] = []
    addresses: list[str] = personal([], description="e-mail addresses")


class Order(Part):
    """An order of a known customer."""

    number: str
    status: str
    placed_on: date
    amount_cents: int
    currency: str


class History(Part):
    """What the shop knows of the sender."""

    name: str = personal()
    customer_since: date
    orders: list[Order] = Field(description="the newest first, at most 10")


class Draft(Part):
    """An answer, ready to be sent."""

    to: str = personal(description="an e-mail address; empty when the sender's could not be read")
    subject: str = personal()
    text: str = personal()


class Submitted(Event, topic="jobs.submitted", stage="submitted", ingest=True):
    """A mail came in."""

    message_id: str
    sender: str = personal("")
    subject: str = personal("")
    text: str = personal("", description="plain text; mails read from files are cut after 200,000 characters")
    received_at: AwareDatetime
    source: str = "inbox"


class Classified(Event, topic="jobs.classified", stage="classified"):
    """What the mail is about, how urgent it is and in which language it is written."""

    message_id: str
    category: Category
    urgency: Urgency
    language: str = Field(description="ISO 639-1, or und when nothing tells")
    why: str = Field(description="what in the mail led to the category; for people")
    decided_by: str
    sender: str = personal()
    subject: str = personal()
    excerpt: str = personal(description="the first 10,000 characters of the text")
    received_at: AwareDatetime


class Enriched(Event, topic="jobs.enriched", stage="enriched"):
    """What the text names, and what the shop knows of the sender (null: nothing)."""

    message_id: str
    category: Category
    urgency: Urgency
    language: str
    sender: str = personal()
    subject: str = personal()
    entities: Entities
    history: History | None
    decided_by: str
    summary: str = personal(
        "", description="what the sender wants, in a few sentences; empty when only rules have read it"
    )


class Acted(Event, topic="jobs.acted", stage="acted"):
    """What is to become of the mail: an answer, a team that takes it, or nothing."""

    message_id: str
    category: Category
    urgency: Urgency
    language: str
    decision: Decision
    why: str
    decided_by: str
    draft: Draft | None = Field(None, description="of a reply")
    team: Team | None = Field(None, description="of a routing, and of a reply that promises more")
    known_orders: list[str] = Field([], description="the sender's own orders: all that a draft may speak of")
    sent_as: str | None = Field(None, description="Message-ID of the answer that was sent; null: none was")


class Done(Event, topic="jobs.done", stage="done", terminal="done"):
    """The decision passed every check; whoever sends mails or fills queues starts here."""

    message_id: str
    category: Category
    decision: Decision
    decided_by: str
    draft: Draft | None = None
    team: Team | None = None
    sent_as: str | None = Field(None, description="Message-ID of the answer that was sent; null: none was")
