"""What a text names: order numbers, amounts, dates, phone numbers, links, addresses.

Every quantifier is bounded and no pattern nests them, so the time grows with the text's length and not with its malice.
"""

import re
from itertools import islice

from agents.rules.senders import ADDRESS
from schemas.jobs import Entities

#: Of one kind; a mail that names more is a list, and the first ones say as much as all.
MOST = 20

_MONTH = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|januar|februar|märz|mai|juni|juli|okt|dez"
    r"|janvier|février|mars|avril|juin|juillet|août|enero|febrero|marzo|abril|mayo|junio|julio|agosto)[a-zé]{0,7}"
)
#: Our own order numbers look like A-10423; a bare number counts behind a word for "order".
_ORDER = re.compile(
    r"\b[A-Z]-\d{5}\b"
    r"|(?:(?:order|bestell|auftrag|commande|pedido|ordine)[\w.]{0,12}[ :]{0,3}"
    r"(?:(?:no|nr|number|nummer|numéro|n[°º])[.: ]{0,3})?[#°º]?[ ]?)((?:[A-Z]-)?\d{5,12})\b",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"(?:[$€£¥]|\b(?:USD|EUR|GBP|CHF|JPY))[ ]?\d{1,3}(?:[.,' ]?\d{3}){0,4}(?:[.,]\d{2})?\b"
    r"|(?<![\d.,])\d{1,3}(?:[.,' ]?\d{3}){0,4}(?:[.,]\d{2})?[ ]?(?:[$€£¥]|(?:USD|EUR|GBP|CHF|euros?|dollars?)\b)",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d{2})\b|\b\d{4}年\d{1,2}月\d{1,2}日"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.)?[ ](?:de[ ])?{_MONTH}\.?(?:,?[ ](?:de[ ])?\d{{4}})?\b"
    rf"|\b{_MONTH}\.?[ ]\d{{1,2}}(?:st|nd|rd|th)?(?:,?[ ]\d{{4}})?\b",
    re.IGNORECASE,
)
_PHONE = re.compile(r"(?<![\w.+/-])(?:\+\d{1,3}|\(?0\d{1,4}\)?|\(?\d{3}\)?)(?:[ ./-]{1,2}\d{2,5}){2,5}(?![\w/-])")
_URL = re.compile(r"\b(?:https?://|www\.)[^\s<>\"')\]]{1,200}", re.IGNORECASE)


def find(text: str) -> Entities:
    """All that `text` names, each once, in order, as it stands there.

    >>> found = find("Order A-10423 of 3 May 2026 over 49,90 € never came, call +49 30 555 01 23")
    >>> found.orders, found.amounts, found.dates, found.phones
    (['A-10423'], ['49,90 €'], ['3 May 2026'], ['+49 30 555 01 23'])
    """
    return Entities(
        orders=[number.upper() for number in _each(_ORDER, text)],
        amounts=_each(_AMOUNT, text),
        dates=_each(_DATE, text),
        phones=[phone for phone in _each(_PHONE, text) if not _DATE.fullmatch(phone)],
        urls=[url.rstrip(".,;:!?") for url in _each(_URL, text)],
        addresses=[address.lower() for address in _each(ADDRESS, text)],
    )


def _each(pattern: re.Pattern[str], text: str) -> list[str]:
    """The first matches, each once; where the pattern marks the part that counts, that part."""
    found = ((match[pattern.groups] or match[0]).strip() for match in pattern.finditer(text))
    return list(dict.fromkeys(islice(found, MOST)))
