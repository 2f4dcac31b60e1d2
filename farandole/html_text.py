"""HTML to the text a reader sees: tags gone, blocks on lines of their own, scripts and styles left out.

A scanner of its own, because html.parser takes the square of the length on hostile pages: 14 s for 40 kB of "<a " on
Python 3.11. Here every search is bounded or made once.
"""

from __future__ import annotations

import re
from html import unescape

#: Characters of a page that are looked at; what stands beyond is never the message.
MAX_HTML = 1_000_000

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,15}|!|\?)[^<>]{0,4000}>")
_HIDDEN = re.compile(r"<(script|style|title|!--)", re.IGNORECASE)
_END_OF_HIDDEN = {"script": "</script", "style": "</style", "title": "</title", "!--": "-->"}
_BLOCKS = "p div br tr li ul ol table h1 h2 h3 h4 h5 h6 hr center blockquote pre form section article".split()  # noqa: SIM905  a list of words is read more easily


def text_of(page: str) -> str:
    """The text of an HTML page; never raises, whatever the page.

    >>> text_of("<style>p {color: red}</style><p>Hello,<br>where is my <b>parcel</b>?&nbsp;&#9786;</p>")
    'Hello,\\nwhere is my parcel? ☺'
    """
    shown = _TAG.sub(_line_or_nothing, _without_hidden(page[:MAX_HTML].replace("\n", " ")))
    lines = (" ".join(line.split()) for line in unescape(shown).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _line_or_nothing(tag: re.Match[str]) -> str:
    name = tag[2].lower()
    return "\n" if name in _BLOCKS else " " if name == "td" else ""


def _without_hidden(page: str) -> str:
    """`page` less what a browser hides. Where an end is missing only the opening goes, and no second search is made."""
    lower, kept, at = page.lower(), [], 0
    if len(lower) != len(page):  # a letter whose lower case is longer would shift every position
        lower = page
    endless: set[str] = set()
    while opening := _HIDDEN.search(page, at):
        kept.append(page[at : opening.start()])
        kind = opening[1].lower()
        end = -1 if kind in endless else lower.find(_END_OF_HIDDEN[kind], opening.end())
        if end < 0:
            endless.add(kind)
        at = end + len(_END_OF_HIDDEN[kind]) if end >= 0 else opening.end()
        if kind != "!--":  # what is left of the tag itself
            at = max(at, page.find(">", at, at + 4000) + 1)
    return "".join([*kept, page[at:]])
