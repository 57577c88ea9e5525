"""Claims and rows as text, Markdown and CSV."""

import csv
import io
from dataclasses import replace

from penstock.report.findings import Claim, ClaimReference
from penstock.report.tables import claims_csv, claims_markdown, claims_text, rows_csv

CLAIMS = [
    Claim(claim="Three is 3", by="io-sets", paper="3", ours="3.00", holds=True, why="Rule: equal."),
    Claim(
        claim="a|b, [red]",
        by="io-sets",
        paper="x",
        ours="+1% [0, 2]",
        holds=False,
        why="Rule: less. Not so.",
    ),
]


def test_csv_reads_back_as_written() -> None:
    rows = list(csv.DictReader(io.StringIO(claims_csv(CLAIMS))))
    assert [row["holds"] for row in rows] == ["yes", "no"]
    assert rows[1]["claim"] == CLAIMS[1].claim
    assert rows[1]["ours"] == CLAIMS[1].ours


def test_markdown_keeps_a_bar_inside_its_cell() -> None:
    lines = claims_markdown(CLAIMS).splitlines()
    assert lines[0] == "| claim | by | paper | ours | holds | why |"
    assert all(line.replace("\\|", "").count("|") == 7 for line in lines)


def test_text_explains_what_differs_and_only_that() -> None:
    text = claims_text(CLAIMS, width=100)
    assert "Rule: less. Not so." in text
    assert "Rule: equal." not in text
    assert "[red]" in text, "brackets are data, not colours"
    assert "+1% [0, 2]" in text
    assert "1 of 2 claims hold, 1 does not." in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_a_busy_machine_is_not_said_to_refute_a_claim() -> None:
    """ "0 of 2 claims are seen to hold" reads as a failure."""
    small = replace(
        CLAIMS[0],
        holds=None,
        by_clock=True,
        repeats=ClaimReference(study="large", claim="Three is 3"),
    )
    text = claims_text([small, small], width=200)
    assert "the machine was too busy to judge 2 claims by measured times" in text
    assert "0 of" not in text
    assert "1 of 2 claims are seen" in claims_text([small, replace(small, holds=True)], width=200)


def test_rows_keep_every_digit_and_every_column() -> None:
    text = rows_csv([{"a": 0.1 + 0.2, "b": None}, {"a": 1, "c": "x,y"}])
    rows = list(csv.DictReader(io.StringIO(text)))
    assert float(rows[0]["a"]) == 0.1 + 0.2
    assert rows[0]["b"] == rows[0]["c"] == ""
    assert rows[1]["c"] == "x,y"
    assert text.splitlines()[0] == "a,b,c"
