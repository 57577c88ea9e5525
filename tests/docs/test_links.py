"""Links work on a code host too: they lead to files of the repository, not to made pages."""

import re
from pathlib import Path

import pytest
from docs import pages
from docs.pages import ROOT

READMES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in sorted((ROOT / "examples").rglob("*.md"))
}
PAGES = pages.written() | READMES
_FENCED = re.compile(r"^```.*?^```", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: of its headings, as code hosts make them, and its own."""
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", text), re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)
    return {*plain, *re.findall(r'<a id="([^"]+)">', text)}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    dead = []
    for link in _LINK.findall(_FENCED.sub("", PAGES[page])):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = Path(ROOT / page).parent / path if path else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            dead.append(link)
    assert dead == []


def test_anchors_are_those_of_a_code_host() -> None:
    page = '# A `b`, c\n```sh\n# no heading\n```\n## What-if?\n<a id="own"></a>'
    assert anchors(page) == {"a-b-c", "what-if", "own"}
