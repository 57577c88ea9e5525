"""The page stands alone and shows text as text."""

import re
from html.parser import HTMLParser
from pathlib import Path

from penstock.report.findings import Claim, Curves, Figure, Findings, Series
from penstock.report.html import page
from penstock.report.plots import save

FIGURE = Figure(
    name="one",
    title="A <figure>",
    caption="Simulated & synthetic",
    panels=[Curves(title="T", x="x", y="y", series=[Series(label="set-10", x=[1, 2], y=[3, 4])])],
)
FINDINGS = Findings(
    title="A <study>",
    summary="Sum & mary",
    claims=[
        Claim(claim="<b>", by="io-sets", paper="1", ours="2 < 3", holds=False, why="Rule: x & y."),
        Claim(claim="c", by="penstock", paper="1", ours="1", holds=True, why="Rule: equal."),
    ],
    figures=[FIGURE],
    made=[("seed", "7")],
)


class Checker(HTMLParser):
    """Collects tags and text, and sees that every opened tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "img", "col"}:
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> Checker:
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    return checker


def test_the_page_needs_no_other_file(tmp_path: Path) -> None:
    pictures = {"one": save(FIGURE, tmp_path)["svg"]}
    text = page(FINDINGS, pictures, made=[("command", "penstock reproduce x --out DIR")])
    checker = read(text)
    assert len(checker.links) == 1
    assert checker.links[0].startswith("data:image/svg+xml;base64,")
    assert not re.search(r"url\(|@import|<script|<link", text)
    for said in ("A <study>", "2 < 3", "Rule: x & y.", "Simulated & synthetic", "--out DIR"):
        assert said in checker.text
    assert "1 of 2 claims hold" in checker.text


def test_a_comparison_shows_its_table_first(tmp_path: Path) -> None:
    findings = Findings(title="T", summary="S", table=[("policy", "U"), ("set-10", "0.97 ± 0.01")])
    checker = read(page(findings, {}))
    assert "0.97 ± 0.01" in checker.text
    assert "Claims" not in checker.text
