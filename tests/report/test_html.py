"""The page stands alone and shows text as text."""

from pathlib import Path

from report.report_pages import assert_stands_alone, read

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
    provenance=[("seed", "7")],
)


def test_the_page_needs_no_other_file(tmp_path: Path) -> None:
    pictures = {"one": save(FIGURE, tmp_path)["svg"]}
    text = page(FINDINGS, pictures, provenance=[("command", "penstock reproduce x --out DIR")])
    checker = assert_stands_alone(text)
    assert len(checker.figures) == 1
    for phrase in ("A <study>", "2 < 3", "Rule: x & y.", "Simulated & synthetic", "--out DIR"):
        assert phrase in checker.text
    assert "1 of 2 claims hold, 1 does not: 0 of 1 of the paper's, 1 of 1 of ours." in checker.text
    cautious = page(FINDINGS, pictures, caution="quick: too few")
    assert "quick: too few" in read(cautious).text


def test_a_comparison_shows_its_table_first(tmp_path: Path) -> None:
    findings = Findings(title="T", summary="S", table=[("policy", "U"), ("set-10", "0.97 ± 0.01")])
    checker = read(page(findings, {}))
    assert "0.97 ± 0.01" in checker.text
    assert "Claims" not in checker.text
