"""What may leave the house: each check names its objection, or says nothing. Whoever wrote the draft, these read it."""

import re

from agents.rules import entities, language
from agents.rules.senders import is_machine
from schemas.jobs import Acted, Category, Decision, Draft

#: Matters that a person answers, whatever the draft says.
FOR_PEOPLE = {Category.LEGAL, Category.PHISHING}

#: Where our own links lead.
OUR_HOSTS = ("https://shop.example.com/", "https://www.example.com/")

#: Characters of an answer; a longer one is not from a template.
LONGEST = 4000

_CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_GAP = re.compile(r"\{\w{0,40}\}|\[(?:name|order|date|TODO)\]|<<\w{1,40}>>", re.IGNORECASE)


def incomplete(acted: Acted) -> str | None:
    if acted.decision is Decision.REPLY and not (acted.draft and acted.draft.text.strip()):
        return "a reply without a draft"
    return "a routing without a team" if acted.decision is Decision.ROUTE and not acted.team else None


def no_recipient(acted: Acted) -> str | None:
    return "the sender's address cannot be read" if acted.draft and not acted.draft.to else None


def automatic_sender(acted: Acted) -> str | None:
    return "nobody reads answers at this address" if acted.draft and is_machine(acted.draft.to) else None


def needs_a_person(acted: Acted) -> str | None:
    return f"{acted.category} is for people" if acted.draft and acted.category in FOR_PEOPLE else None


def card_number(acted: Acted) -> str | None:
    """A payment card's number is 13 to 19 digits whose Luhn sum is right."""
    found = (re.sub(r"\D", "", match[0]) for match in _CARD.finditer(_words(acted.draft)))
    return "holds a payment card's number" if any(map(_luhn, found)) else None


def foreign_link(acted: Acted) -> str | None:
    links = entities.find(_words(acted.draft)).urls
    return next((f"a link that is not ours: {link[:80]}" for link in links if not link.startswith(OUR_HOSTS)), None)


def unverified_order(acted: Acted) -> str | None:
    named = entities.find(acted.draft.text if acted.draft else "").orders
    strange = [number for number in named if number not in acted.known_orders]
    return f"order {strange[0]} is not known to be the sender's" if strange else None


def unfilled(acted: Acted) -> str | None:
    gap = _GAP.search(acted.draft.text) if acted.draft else None
    return f"left open: {gap[0]}" if gap else None


def too_long(acted: Acted) -> str | None:
    size = len(acted.draft.text) if acted.draft else 0
    return f"{size} characters" if size > LONGEST else None


def wrong_language(acted: Acted) -> str | None:
    """A mail whose language nothing told may be answered in any."""
    if not acted.draft or acted.language == language.UNKNOWN:
        return None
    found = language.detect(acted.draft.text)
    return f"the draft is in {found}, the mail in {acted.language}" if found != acted.language else None


def _words(draft: Draft | None) -> str:
    return f"{draft.subject}\n{draft.text}" if draft else ""


def _luhn(digits: str) -> bool:
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(map(int, "".join(map(str, doubled)))) % 10 == 0 and len(set(digits)) > 1
