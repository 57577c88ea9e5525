"""The pages of the documentation, written and made, and what stands in their blocks of code."""

import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_site"))

import made  # noqa: E402 - the room beside the pages

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


@cache
def written() -> dict[str, str]:
    """Return the pages that people wrote: their paths in the repository, and their texts."""
    files = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    return {f.relative_to(ROOT).as_posix(): f.read_text() for f in sorted(files)}


@cache
def from_code() -> dict[str, str]:
    """Return the pages that are made when the site is built."""
    return {f"docs/{name}": text for name, text in made.pages().items()}


def blocks(text: str, *languages: str) -> list[str]:
    """Return the blocks of code in these languages."""
    return [code for language, code in _BLOCK.findall(text) if language in languages]


def commands(text: str) -> list[str]:
    """Return the commands of a page, one a line; without comments, and joined where they go on."""
    joined = "\n".join(blocks(text, "console")).replace("\\\n", " ")
    lines = [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s+#\s.*", "", line) for line in lines]
