"""The tables of claims: a study judges every claim, and its texts say who claims what."""

from pathlib import Path

import pytest

from penstock import studies
from penstock.report.papers import OURS, PAPERS
from penstock.studies import STUDIES, claims

SOURCES = "".join(
    file.read_text(encoding="utf-8") for file in Path(studies.__file__).parent.rglob("*.py")
)


@pytest.mark.parametrize("study", STUDIES)
def test_every_claim_is_judged_by_a_study(study: str) -> None:
    texts = claims.load(study).texts
    assert texts
    assert [name for name in texts if f'"{name}"' not in SOURCES] == []
    assert all(text.by in {*PAPERS, OURS} for text in texts.values())


def test_fields_are_filled_in_and_the_reason_follows_where_the_claim_does_not_hold() -> None:
    text = claims.ClaimText(
        claim="at {x:g} it is 2",
        paper="2",
        rule="within {limit}.",
        differs="Noise.",
        by="packs",
    )
    claim = claims.ClaimTable({"two": text})
    holds, differs = (claim("two", "2.1", ours, x=0.5, limit=1) for ours in (True, False))
    assert (holds.claim, holds.holds, holds.why) == ("at 0.5 it is 2", True, "Rule: within 1.")
    assert (differs.holds, differs.why) == (False, "Rule: within 1. Noise.")
