"""One page of all studies: what it counts, what it links to, what it says of those that failed."""

import csv
import io
from pathlib import Path

from report.report_pages import assert_stands_alone

from penstock.report.all_studies import (
    StudyResult,
    counted,
    first_looks,
    of_ours,
    of_papers,
    page,
    tallies,
)
from penstock.report.findings import (
    Basis,
    Claim,
    Claimant,
    ClaimReference,
    Curves,
    Figure,
    Findings,
    Series,
)
from penstock.report.plots import save
from penstock.report.tables import rows_csv, rows_markdown

FIGURE = Figure(
    name="one",
    title="A <figure>",
    caption="Simulated & synthetic",
    panels=[Curves(title="T", x="x", y="y", series=[Series(label="set-10", x=[1, 2], y=[3, 4])])],
)


def claim(
    text: str, *, holds: bool, by: Claimant = "packs", repeats: ClaimReference | None = None
) -> Claim:
    return Claim(
        claim=text,
        by=by,
        paper="3",
        ours="2 < 3",
        holds=holds,
        why=f"Rule: equal. Because of {text}.",
        repeats=repeats,
    )


def studied(name: str, *claims: Claim, pictures: dict[str, Path] | None = None) -> StudyResult:
    findings = Findings(
        title=f"Study {name}",
        summary="S & T",
        claims=claims,
        figures=[FIGURE] if pictures else [],
        basis=Basis(simulated="all of it"),
    )
    return StudyResult(
        name=name,
        title=name,
        command=f"penstock reproduce {name}",
        findings=findings,
        pictures=pictures or {},
    )


def test_a_claim_repeated_in_small_counts_where_it_is_judged() -> None:
    judged = studied("large", claim("A", holds=False))
    small = studied(
        "small", claim("a", holds=True, repeats=ClaimReference(study="large", claim="A"))
    )
    (one,) = counted([small, judged])
    assert (one.place.study, one.claim.holds) == ("large", False)
    assert [place.study for place, _ in one.also] == ["small"]


def test_a_first_look_alone_is_told_but_neither_judged_nor_counted() -> None:
    first = claim("a", holds=True, repeats=ClaimReference(study="large", claim="A"))
    small = studied("small", first)
    assert counted([small]) == []
    assert [(place.study, judge.study) for place, judge in first_looks([small])] == [
        ("small", "large")
    ]
    assert first_looks([small, studied("large", claim("A", holds=False))]) == []
    read = assert_stands_alone(page([small], absent={"large": ""}))
    for phrase in (
        "No paper's claim is judged here.",
        "noneof these papers' claims was judged",
        "neither judged nor counted here: 1 of small (large judges)",
        "first look; large judges",
        "1 of 1 claims are seen to hold at a first look, which judges none of them: large does.",
    ):
        assert phrase in read.text, phrase
    assert "1 / 1" not in read.text


def test_a_page_of_some_studies_does_not_claim_to_be_of_all() -> None:
    some = [studied("x", claim("A", holds=True), claim("B", holds=True, by="io-sets"))]
    whole = assert_stands_alone(page(some)).text
    assert "ran the evaluations of two papers again and" in whole
    assert "2 of 2of the papers' claims hold" in whole
    assert "Not asked for" not in whole
    part = assert_stands_alone(page(some, absent={"y": "", "z": "left out: <old>"})).text
    assert "ran evaluations of two papers again (io-sets, packs), not all, and" in part
    assert "2 of 2of these papers' claims hold" in part
    assert "Not asked for: y, z (left out: <old>)." in part
    one = [studied("x", claim("A", holds=True))]
    assert "evaluations of one paper again" in assert_stands_alone(page(one)).text


def test_the_same_words_count_once_and_hold_only_if_they_hold_everywhere() -> None:
    first, second = (
        studied(name, claim("No gate", holds=holds, by="penstock"))
        for name, holds in (("x", True), ("y", False))
    )
    (one,) = counted([first, second])
    assert (one.place.study, one.claim.holds) == ("y", False)
    # Of two papers, the same words are two claims.
    other_paper = studied("z", claim("No gate", holds=True))
    assert len(counted([first, other_paper])) == 2


def test_papers_and_ours_are_counted_apart() -> None:
    claims = counted(
        [
            studied("x", claim("A", holds=True), claim("B", holds=False)),
            studied(
                "y", claim("C", holds=True, by="io-sets"), claim("D", holds=True, by="penstock")
            ),
        ]
    )
    assert [(by, one.claims, one.hold) for by, one in tallies(claims).items()] == [
        ("io-sets", 1, 1),
        ("packs", 2, 1),
        ("penstock", 1, 1),
    ]
    assert len(of_papers(claims)) == 3
    assert len(of_ours(claims)) == 1


def test_the_page_says_what_does_not_hold_why_and_what_is_missing(tmp_path: Path) -> None:
    pictures = {"one": save(FIGURE, tmp_path)["svg"]}
    studies = [
        studied("x", claim("A<1>", holds=True), claim("B|", holds=False), pictures=pictures),
        studied("y", claim("D", holds=False, by="penstock")),
        StudyResult(name="z", title="Z", command="c", state="failed", problem="no <memory>"),
        StudyResult(name="w", title="W", command="c", state="not run"),
    ]
    text = page(studies, provenance=[("seed", "7")], caution="quick: too few")
    read = assert_stands_alone(text)
    assert "#x-claim-2" in read.links
    assert "#x-claim-1" not in read.links
    assert "#y-claim-1" in read.links
    for phrase in (
        "1 of 2of these papers' claims hold",
        "ran evaluations of one paper again (packs), not all",
        "0 of 1of our own claims hold",
        "Because of B|",
        "z (failed: no <memory>)",
        "w (not run)",
        "all of it",
        "A<1>",
    ):
        assert phrase in read.text, phrase
    assert read.text.count("quick: too few") == 3, "above all, and in each study that is told"
    assert {section for section, _ in read.marks} == {"study-x", "study-y"}
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_rows_are_a_table_in_markdown_too() -> None:
    rows = [{"study": "x", "claim": "a|b"}, {"study": "y", "claim": "c"}]
    assert rows_markdown(rows).splitlines()[2] == "| x | a\\|b |"
    assert list(csv.DictReader(io.StringIO(rows_csv(rows)))) == rows
    assert rows_markdown([]) == "|  |\n|\n"
