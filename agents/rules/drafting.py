"""Writing the answer: address, subject and text, in the mail's own language."""

from agents.rules.senders import address_of
from agents.rules.templates import CLOSING, GREETING, NO_SUBJECT, STATUS, TEXTS, Occasion
from schemas.jobs import Draft, Enriched, Order

#: Characters of the subject that an answer repeats.
SUBJECT = 120


def draft_of(mail: Enriched, occasion: Occasion, language: str, order: Order | None) -> Draft:
    """The answer for `occasion`; `to` is empty when the sender's address cannot be read, which `confirm` will see."""
    text = TEXTS[occasion][language]
    if order:
        status = STATUS[language].get(order.status, order.status)
        text = text.format(order=order.number, status=status)
    greeting = f"{GREETING[language]} {mail.history.name}" if mail.history else GREETING[language]
    return Draft(
        to=address_of(mail.sender),
        subject=reply_subject(mail.subject, language),
        text=f"{greeting},\n\n{text}\n\n{CLOSING[language]}",
    )


def reply_subject(subject: str, language: str) -> str:
    """The mail's subject on one line with one "Re: ".

    >>> reply_subject("RE: Re:  my\\n order", "en"), reply_subject(" ", "de")
    ('Re: my order', 'Re: Ihre Nachricht')
    """
    words = " ".join("".join(char if char.isprintable() else " " for char in subject[: 4 * SUBJECT]).split())
    while words[:3].lower() == "re:":
        words = words[3:].lstrip()
    return f"Re: {words[:SUBJECT] or NO_SUBJECT[language]}"
