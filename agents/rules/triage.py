"""What is a mail about, how urgent is it? Cues are counted, categories are weighed, and the reason is kept.

Written for the inbox of a small shop, and looked at on 6,046 public mails of 2002-2003 (`make corpus`), which say what
real mail looks like; a cue stands here because it is plain, not because it wins one of those mails.
"""

import re
import unicodedata
from collections.abc import Iterable

from pydantic import BaseModel

from agents.rules import language
from agents.rules.senders import address_of, is_machine
from agents.rules.vocabulary import CUES, DANGER, HASTE
from schemas.jobs import Category, Urgency

#: Characters of the text that are weighed. What a mail wants stands at its start; the rest is logs, quotes and footers.
ENOUGH = 6000

#: Cues of advertising that make spam: everybody uses one of them now and then, hardly anybody three.
SPAM_CUES = 3

#: Who wins when cues are equally many: what harms when overlooked goes first, what nobody waits for goes last.
_FIRST = (
    Category.LEGAL, Category.REFUND, Category.COMPLAINT, Category.ORDER_STATUS, Category.INVOICE, Category.TECHNICAL,
    Category.JOB_APPLICATION, Category.SALES, Category.THANKS,
)  # fmt: skip
#: For these nobody waits.
_IDLE = {Category.THANKS, Category.NEWSLETTER, Category.SPAM, Category.AUTO_REPLY}


class Triage(BaseModel, frozen=True):
    """The answer to "what is this mail?"."""

    category: Category
    urgency: Urgency
    language: str
    why: str


def triage(sender: str, subject: str, text: str) -> Triage:
    """Weigh a mail; any text gets an answer.

    >>> found = triage("customer@example.com", "Refund?", "I want my money back, please.")
    >>> found.category.value, found.urgency.value, found.language, found.why
    ('refund', 'normal', 'en', 'says: money back, refund')
    """
    own = own_words(text[:ENOUGH])
    tongue = language.detect(f"{subject[:500]}\n{own}")
    category, why = _category(sender, subject[:500], own, text[:ENOUGH])
    return Triage(category=category, urgency=_urgency(category, f"{subject[:500]} {own}"), language=tongue, why=why)


def own_words(text: str) -> str:
    """The text without what it quotes from the mail it answers."""
    lines = text.splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith((">", "|"))) if len(lines) > 1 else text


def plain(text: str) -> str:
    """Lower case, one form of each letter, one space between words and at both ends, so that a cue is found by `in`.

    >>> plain("Where's  MY—order?")
    ' where s my order '
    """
    words = re.sub(r"[\W_]+", " ", unicodedata.normalize("NFKC", text).casefold())
    return f" {words.strip()} "


def cues_in(words: str, cues: Iterable[str]) -> list[str]:
    """The cues that `words` (as `plain` gives them) holds; see `vocabulary` for where a cue fits."""
    return [cue for cue in cues if (f" {cue}" if cue < "\u0370" else cue) in words]


def _category(sender: str, subject: str, own: str, whole: str) -> tuple[Category, str]:
    if not subject.strip() and not whole.strip():
        return Category.EMPTY, "neither subject nor text"
    title, words = plain(subject), plain(f"{subject}\n{own}")
    found = {category: cues_in(words, cues) for category, cues in CUES.items()}
    sure = _machine_or_bait(sender, title, found, whole)
    if sure:
        return sure
    if not own.strip() and not any(found.values()):
        return Category.EMPTY, "no text of its own"
    wanted = max(_FIRST, key=lambda category: _weight(category, found, title))
    weight = _weight(wanted, found, title)
    bait = found[Category.SPAM]
    shouts = _shouts(subject, whole)
    if (len(bait) >= SPAM_CUES or (len(bait) == SPAM_CUES - 1 and shouts)) and len(bait) > weight:
        return Category.SPAM, _says(bait) + ("; shouts" if shouts else "")
    if _written_to_many(subject, whole, found) and weight < 3:
        cues = found[Category.NEWSLETTER]
        return Category.NEWSLETTER, _says(cues) if cues else "subject or footer of a list"
    if weight:
        return wanted, _says(found[wanted])
    return Category.OTHER, "no cue"


def _machine_or_bait(
    sender: str, title: str, found: dict[Category, list[str]], whole: str
) -> tuple[Category, str] | None:
    """What is not from a person, whatever else it says: an answering machine, a bounce, a bait for passwords."""
    answers = title.startswith((" re ", " aw "))  # people talking about such a mail
    machine = [] if answers else cues_in(title, CUES[Category.AUTO_REPLY])
    if machine or (found[Category.AUTO_REPLY] and is_machine(address_of(sender))):
        return Category.AUTO_REPLY, _says(machine or found[Category.AUTO_REPLY])
    if found[Category.PHISHING] and ("http" in whole.casefold() or "gift card" in whole.casefold()):
        return Category.PHISHING, f"{_says(found[Category.PHISHING])}; and asks to follow"
    return None


def _weight(category: Category, found: dict[Category, list[str]], title: str) -> int:
    """Cues, those of the subject twice: people put there what they want."""
    return len(found[category]) + len(cues_in(title, found[category]))


def _written_to_many(subject: str, whole: str, found: dict[Category, list[str]]) -> bool:
    tagged = re.match(r"(?:re: ?|fwd?: ?|aw: ?)?\[[\w .:-]{2,40}\]", subject.strip(), re.IGNORECASE)
    footer = cues_in(plain(whole[-1500:]), ("mailing list", "unsubscribe", "listinfo"))
    return bool(tagged or found[Category.NEWSLETTER] or footer)


def _shouts(subject: str, whole: str) -> bool:
    """Capitals and exclamation marks, as hardly anybody writes to somebody."""
    letters = [letter for letter in subject if letter.isalpha()]
    capitals = len(letters) > 8 and sum(map(str.isupper, letters)) > 0.6 * len(letters)
    return capitals or "!!" in subject or whole.count("!") > 5 or "$$" in subject


def _urgency(category: Category, text: str) -> Urgency:
    if category in _IDLE:
        return Urgency.LOW
    if category in (Category.LEGAL, Category.PHISHING) or cues_in(plain(text), (*HASTE, *DANGER)):
        return Urgency.HIGH
    return Urgency.LOW if category in (Category.EMPTY, Category.JOB_APPLICATION) else Urgency.NORMAL


def _says(cues: list[str]) -> str:
    return f"says: {', '.join(sorted(cue.strip() for cue in cues)[:5])}"
