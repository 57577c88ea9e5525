"""A report read as a browser reads it: what it links to, shows and says."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "col", "br"}


@dataclass
class Seen:
    alt: str
    source: str
    caption: str = ""


@dataclass
class Page(HTMLParser):
    """Sees that every opened tag is closed, and collects what a test asks for."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    figures: list[Seen] = field(default_factory=list)
    marks: list[tuple[str, str]] = field(default_factory=list)
    """The section that a claim stands in, and yes or no."""
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.open_tags: list[str] = []
        self._section = ""
        self._in_claims = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self.open_tags.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "section":
            self._section = attributes.get("id", "")
        if tag == "a":
            self.links.append(attributes["href"])
        if tag == "img":
            self.figures.append(Seen(alt=attributes["alt"], source=attributes["src"]))
        if tag == "table":
            self._in_claims = "claims" in attributes.get("class", "")
        if self._in_claims and attributes.get("class", "").startswith("mark "):
            self.marks.append((self._section, attributes["class"].removeprefix("mark ")))

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "figcaption" in self.open_tags:
            self.figures[-1].caption += data


def read(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    assert page.open_tags == []
    return page


def assert_stands_alone(text: str) -> Page:
    """Nothing is loaded, every link leads somewhere on the page, every figure says what it is."""
    page = read(text)
    assert len(set(page.ids)) == len(page.ids)
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links), page.links
    assert not re.search(r"url\(|@import|<script|<link|https?://", text)
    for figure in page.figures:
        assert figure.source.startswith("data:image/svg+xml;base64,")
        assert figure.alt
        assert re.search(r"simulated|measured|emulated", figure.alt)
        assert re.search(r"simulated|measured|emulated", figure.caption.lower()), figure.alt
    return page
