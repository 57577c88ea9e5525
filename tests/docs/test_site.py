"""The site is built without a warning, hangs together, and asks nothing of other hosts."""

import os
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from docs import pages
from docs.pages import DOCS, ROOT

WITHIN = 1200
UNREAD = {"script", "style", "pre"}
"""What is in these is no prose: scripts, and blocks of code as they were written."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it; a warning is an error."""
    out = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return out


class Parsed(HTMLParser):
    """What a page refers to: links, what it loads, the anchors it has, and the text it shows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.pictures: list[dict[str, str | None]] = []
        self.text = ""
        self._unread = 0
        self.feed(text)

    def handle_data(self, data: str) -> None:
        self.text += "" if self._unread else data

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in UNREAD

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._unread += tag in UNREAD
        self.anchors |= {value for key in ("id", "name") if (value := attributes.get(key))}
        if tag == "a" and (link := attributes.get("href")):
            self.links.append(link)
        if tag == "img":
            self.pictures.append(attributes)
        rel = attributes.get("rel") or ""
        if tag == "link" and rel not in {"canonical", "next", "prev"} and attributes.get("href"):
            self.loaded.append(attributes["href"] or "")
        if tag in {"script", "img", "iframe", "source", "video", "audio"} and attributes.get("src"):
            self.loaded.append(attributes["src"] or "")


@cache
def parsed(page: Path) -> Parsed:
    return Parsed(page.read_text())


def html(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_every_page_is_there(site: Path) -> None:
    """Written or made: each is a page of the site, and the nav leads to it."""
    uris = [name for name in pages.written() if name.startswith("docs/")] + [*pages.from_code()]
    wanted = {site / f"{uri.removeprefix('docs/').removesuffix('.md')}.html" for uri in uris}
    assert wanted <= set(html(site))
    start = parsed(site / "index.html")
    led = {Path(normpath(site / urlsplit(link).path)) for link in start.links if "://" not in link}
    assert wanted <= led | {site / "index.html"}, "the nav does not lead to all"


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    there = {str(site), *(str(file) for file in site.rglob("*"))}
    dead = []
    # Links of the page that is shown where none is are absolute: nobody knows where that will be.
    for page in [page for page in html(site) if page.name != "404.html"]:
        for link in set(parsed(page).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = normpath(page.parent / unquote(parts.path)) if parts.path else str(page)
            anchor = unquote(parts.fragment)
            missing = (
                anchor
                and target.endswith(".html")
                and target in there
                and anchor not in parsed(Path(target)).anchors
            )
            if target not in there or missing:
                dead.append(f"{page.relative_to(site)}: {link}")
    assert not dead, "\n".join(dead)


def test_every_picture_is_there_and_says_what_it_shows(site: Path) -> None:
    shown = 0
    for page in html(site):
        for picture in parsed(page).pictures:
            assert (page.parent / unquote(picture["src"] or "")).is_file(), picture
            assert picture.get("alt"), f"{page}: {picture['src']} has no alternative text"
            shown += 1
    assert shown


def test_nothing_is_asked_of_another_host(site: Path) -> None:
    for page in html(site):
        for loaded in parsed(page).loaded:
            assert not urlsplit(loaded).netloc, f"{page}: {loaded}"
    for style in site.rglob("*.css"):
        urls = re.findall(r"(?:@import|url\()\s*[\"']?((?:https?:)?//[^\"')]+)", style.read_text())
        assert not urls, f"{style}: {urls}"
    for text in [page.read_text() for page in html(site)]:
        assert "fonts.g" not in text


def test_links_out_of_the_site_are_few_and_https(site: Path) -> None:
    """The project has no other home that a page could lead to; papers are named by their DOI."""
    for page in html(site):
        for link in parsed(page).links:
            scheme = urlsplit(link).scheme
            assert scheme in {"", "https"}, f"{page}: {link}"


def test_no_page_speaks_of_a_machine(site: Path) -> None:
    """What a page says holds anywhere: the paths of whoever built it are not in it."""
    for page in html(site):
        assert str(ROOT) not in page.read_text(), page


def test_no_page_shows_the_signs_that_markdown_was_told_to_keep(site: Path) -> None:
    """A backslash before a bar or a bracket is for Markdown, not for readers."""
    shown = [
        f"{page.relative_to(site)}: ...{parsed(page).text[match.start() - 30 : match.end() + 30]}"
        for page in html(site)
        for match in re.finditer(r"\\[<|\[\]*]", parsed(page).text)
    ]
    assert not shown, "\n".join(shown)
    up = parsed(site / "reference/verbs/up.html").text
    assert "--mode [observe|advise|enforce|off]" in up
    assert "0<=x<=1024" in up


def test_pages_that_help_names_are_links(site: Path) -> None:
    assert "../../live/turns.html" in parsed(site / "reference/verbs/mode.html").links
    assert (
        'href="../../live/turns.html">docs/live/turns.md</a>'
        in (site / "reference/verbs/mode.html").read_text()
    )


def test_lists_are_lists(site: Path) -> None:
    """A list right below a line of text is one on the site, too."""
    page = (site / "live/phases.html").read_text()
    assert "<li>" in page.split("What is not a phase:")[1][:60]


def test_the_pages_in_the_nav_are_in_an_order_of_their_own() -> None:
    """Of pages of docs each is named once in mkdocs.yml, or made."""
    text = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    named = re.findall(r"- (?:[\w ]+: )?([\w/-]+\.md)$", text, re.M)
    assert len(named) == len(set(named))
    decided = {f"decisions/{file.name}" for file in (DOCS / "decisions").glob("*.md")}
    written = {name.removeprefix("docs/") for name in pages.written() if name.startswith("docs/")}
    assert written - decided <= set(named)
