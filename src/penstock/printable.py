"""Names from outside (files, logs, other users' jobs) without what a terminal would obey.

Escape sequences move the cursor and recolour the screen, line breaks forge lines, and marks of
direction show a name in another order.
"""

import os
from pathlib import Path
from unicodedata import category

UNKNOWN = "?"


def is_printable(text: str) -> bool:
    """Tell whether a terminal only shows this text; blanks other than the space are fine."""
    return text.isprintable() or all(map(_is_shown, text))


def printable(text: str, keep: str = "") -> str:
    """Return a text with a question mark for each character that is not shown, but for `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c in keep or _is_shown(c) else UNKNOWN for c in text)


def display_name(path: Path) -> str:
    """Return a path as text to show, with marks for bytes that are not UTF-8 and for escapes."""
    text = os.fspath(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return printable(text)


def _is_shown(character: str) -> bool:
    return character.isprintable() or category(character) == "Zs"
