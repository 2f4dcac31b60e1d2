"""In which language is it written? By script, and for Latin letters by the small words that every sentence has.

A rule of a page and no library: the light ones draw lots or are left alone, the good ones bring models of
10 MB and more, and an inbox needs to know only in which language it may answer. A text with no such word is `und`.
"""

import re
from collections import Counter

UNKNOWN = "und"

#: Characters looked at, from the start.
_ENOUGH = 4000

#: Scripts that name a language (or its best guess), as ranges of code points.
_SCRIPTS = (
    ("ja", "\u3040-\u30ff\uff66-\uff9d"), ("ko", "\u1100-\u11ff\uac00-\ud7a3"), ("zh", "\u3400-\u4dbf\u4e00-\u9fff"),
    ("ru", "\u0400-\u04ff"), ("el", "\u0370-\u03ff\u1f00-\u1fff"), ("ar", "\u0600-\u06ff\u0750-\u077f"),
    ("he", "\u0590-\u05ff"), ("hi", "\u0900-\u097f"), ("th", "\u0e00-\u0e7f"),
)  # fmt: skip
_SCRIPT_OF = [(code, re.compile(f"[{ranges}]")) for code, ranges in _SCRIPTS]
_LATIN = re.compile("[a-zA-Z\u00c0-\u024f]")
_LINKS = re.compile(r"\S{0,40}(?:://|@|www\.)\S{0,300}")

#: Frequent small words; one that two languages share says little, but the sum decides.
_SMALL_WORDS = {
    "en": "the and of to is in you that it for on are with this be at have from not i my your was we please an "
    "has do what would if will can me hi hello been no thanks as he but or by me where how when",
    "de": "der die das und ist nicht ich sie wir ein eine einen mit auf für zu den dem von im es bei mein "
    "meine haben habe bitte wurde noch ihre ihr mich aus auch wie bin",
    "fr": "le la les et est pas je vous nous un une des du que qui pour dans sur mon ma votre avec ce cette au "
    "en bonjour été ai merci mais ne suis",
    "es": "el la los las y es no un una que de en por para con mi su se lo del al pero gracias hola he está me "
    "usted como ha todavía estoy",
    "it": "il lo la gli le è non un una che di in per con mi sono del della ho il mio grazie buongiorno ma si "
    "alla nel ancora",
    "pt": "os as não um uma que de em por para com meu minha se do da no na mas obrigado obrigada "
    "olá está foi ainda ao você sua seu são",
    "nl": "de het een en is niet ik u wij van in op met voor mijn dat te zijn heb maar bij uw er aan nog graag "
    "naar om deze",
    "sv": "och är inte jag du vi ett en att det som på för med av till min har kan den om men hej tack från",
    "pl": "nie jest się na do to że jak proszę mój moje dla od ale czy dzień dobry oraz za po był",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _code, _words in _SMALL_WORDS.items():
    for _word in dict.fromkeys(_words.split()):
        _LANGUAGES_OF.setdefault(_word, []).append(_code)


def detect(text: str) -> str:
    """The ISO 639-1 code of the language that most of `text` seems to be in, or "und".

    >>> detect("Where is my order?"), detect("Wo ist meine Bestellung?"), detect("注文はどこですか"), detect("12345")
    ('en', 'de', 'ja', 'und')
    """
    text = text[:_ENOUGH]
    letters = Counter({code: len(pattern.findall(text)) for code, pattern in _SCRIPT_OF})
    latin = len(_LATIN.findall(text))
    if letters["ja"]:
        letters["ja"] += letters.pop("zh")  # Japanese mixes its kana with Chinese characters; Chinese has no kana
    code, count = letters.most_common(1)[0]
    # A sign of such a script stands for two or three Latin letters, and such mails are full of Latin links and names.
    if count * 2 > latin and count > 1:
        return _cyrillic(text) if code == "ru" else code
    return _by_small_words(text)


def _cyrillic(text: str) -> str:
    return "uk" if any(letter in text for letter in "іїєґІЇЄҐ") else "ru"


def _by_small_words(text: str) -> str:
    """Each known word votes, with less weight when several languages know it; one whole vote decides."""
    votes: dict[str, float] = {}
    for word in re.findall(r"[^\W\d_]{1,20}", _LINKS.sub(" ", text).lower()):
        for code in (codes := _LANGUAGES_OF.get(word, ())):
            votes[code] = votes.get(code, 0.0) + 1 / len(codes)
    if not votes:
        return UNKNOWN
    best = max(votes, key=lambda code: (votes[code], -list(_SMALL_WORDS).index(code)))
    return best if votes[best] >= 1 else UNKNOWN
