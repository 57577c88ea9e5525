"""What a claim's verdict says, and how claims are counted."""

import csv
import io
from typing import Any

import pytest

from penstock.report import html, tables
from penstock.report.findings import Claim, ClaimLeftOut, ClaimReference, Findings, Tally, TextTable
from penstock.studies import texts


def claim(name: str = "it is 2", **fields: Any) -> Claim:
    shared: dict[str, Any] = {"by": "packs", "paper": "2", "ours": "2.1", "why": "Rule: equal."}
    return Claim(claim=name, **(shared | {"holds": True} | fields))


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({}, "yes"),
        ({"holds": False}, "no"),
        ({"holds": None}, "not judged"),
        ({"readings": {"a": True, "b": True}}, "yes"),
        ({"holds": False, "readings": {"a": False, "b": False}}, "no"),
        ({"readings": {"a": True, "b": False, "c": True}}, "2 of 3 readings"),
        ({"holds": None, "readings": {"a": True, "b": False}}, "not judged"),
    ],
)
def test_a_verdict_names_the_readings_only_where_they_differ(
    fields: dict[str, Any], verdict: str
) -> None:
    assert claim(**fields).verdict == verdict
    assert tables.cells(claim(**fields))["holds"] == verdict


CLAIMS = [
    claim("a"),
    claim("b", holds=False),
    claim("c", readings={"x": True, "y": False}),
    claim("d", holds=None),
    claim("e", apart="by construction"),
]


def test_open_choices_busy_machines_and_tautologies_are_not_counted_as_holding() -> None:
    tally = Tally.of(CLAIMS)
    assert tally == Tally(claims=4, hold=1, depend=1, not_judged=1, apart=1)
    assert tally.differ == 1
    assert tally.text() == (
        "1 of 4 claims hold, 1 does not, 1 depends on an open choice, 1 not judged, "
        "1 shown but not counted"
    )
    assert tally.text() in tables.claims_text(CLAIMS)


def test_the_csv_marks_the_claims_in_the_sums() -> None:
    """As in the report of all studies: not what holds by construction, nor a first look."""
    first_look = claim("f", repeats=ClaimReference(study="io-sets", claim="a"))
    rows = csv.DictReader(io.StringIO(tables.claims_csv([*CLAIMS, first_look])))
    assert [row["counted"] for row in rows] == ["yes"] * 4 + ["no"] * 2


def test_the_page_shows_why_a_claim_is_not_counted_and_which_were_not_checked() -> None:
    left_out = ClaimLeftOut(claim="Fig. 11", by="packs", reason="It needs <the machine>.")
    findings = Findings(title="t", summary="s", claims=CLAIMS, left_out=[left_out])
    page = html.page(findings, {})
    for phrase in ("not counted: by construction", "1 of 2 readings", "not judged", "Fig. 11"):
        assert phrase in page
    assert "It needs &lt;the machine&gt;." in page
    assert "| Fig. 11 | packs |" in tables.claims_markdown(CLAIMS, [left_out])


def test_a_table_of_claims_says_for_which_readings_a_claim_holds() -> None:
    text = texts.ClaimText(claim="c", paper="2", rule="equal.", differs="Noise.", by="packs")
    judge = texts.ClaimTable({"two": text})
    judged = judge("two", "2", True, readings={"K = 20": True, "K = 30": False})
    assert judged.readings == {"K = 20": True, "K = 30": False}
    assert judged.why == "Rule: equal. Noise. Holds for K = 20. Not for K = 30."
    assert judge("two", "2", True, readings={"a": True, "b": True}).why == (
        "Rule: equal. Holds for all of 2 readings: a; b."
    )


def test_tables_that_claims_refer_to_are_on_the_page_and_in_markdown() -> None:
    one = TextTable(
        name="weights",
        title="weights: <small>.",
        caption="Solved exactly.",
        rows=[("weights", "slowdown"), ("89:1", "32.3%"), ("100:1", "99.0%")],
    )
    findings = Findings(title="A", summary="B", tables=[one])
    page = html.page(findings, {})
    assert "<h2>Tables</h2>" in page
    assert "weights: &lt;small&gt;." in page
    assert "99.0%" in page
    assert tables.text_tables_markdown([one]) == (
        "**weights: <small>.** Solved exactly.\n\n"
        "| weights | slowdown |\n|---|---|\n| 89:1 | 32.3% |\n| 100:1 | 99.0% |\n"
    )


def test_a_first_look_names_the_studies_that_judge() -> None:
    looks = [
        claim(study, repeats=ClaimReference(study=study, claim=study)) for study in ("one", "two")
    ]
    assert tables.tally(looks[:1]).endswith("which judges none of them: one does")
    assert tables.tally(looks).endswith("which judges none of them: one and two do")
