"""Pages of the site that are made from the code when it is built: they cannot be behind it."""

import posixpath
import re
from functools import partial

from made import configuration, decisions, metrics, policies, prometheus, verbs
from made.text import outside_spans
from outside import DOCS, outside_code

_GUIDE = re.compile(r"\bdocs/([\w/-]+\.md)\b")
"""How help texts name pages."""


def pages() -> dict[str, str]:
    """Return every made page: its path below docs, and its text."""
    pages_by_uri: dict[str, str] = {}
    for room in (policies, metrics, prometheus, verbs, configuration, decisions):
        pages_by_uri |= room.pages()
    return {uri: outside_code(text, partial(_linked, uri)) for uri, text in pages_by_uri.items()}


def _linked(uri: str, text: str) -> str:
    """Return a text whose mentions of pages are links to them."""

    def link(mention: re.Match[str]) -> str:
        if not (DOCS / mention[1]).is_file():
            return mention[0]
        return f"[{mention[0]}]({posixpath.relpath(mention[1], posixpath.dirname(uri) or '.')})"

    return outside_spans(text, lambda part: _GUIDE.sub(link, part))
