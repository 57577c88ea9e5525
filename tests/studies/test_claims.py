"""The tables of claims: a study judges every claim, and its texts say who claims what."""

from pathlib import Path

import pytest

from penstock import studies
from penstock.report.findings import OURS, PAPERS
from penstock.studies import STUDIES, texts

SOURCES = "".join(
    file.read_text(encoding="utf-8") for file in Path(studies.__file__).parent.rglob("*.py")
)


@pytest.mark.parametrize("study", STUDIES)
def test_every_claim_is_judged_by_a_study(study: str) -> None:
    claims = texts.claims_of(study).texts
    assert claims
    assert [name for name in claims if f'"{name}"' not in SOURCES] == []
    assert all(text.by in {*PAPERS, OURS} for text in claims.values())


def test_fields_are_filled_in_and_the_reason_follows_where_the_claim_does_not_hold() -> None:
    text = texts.ClaimText(
        claim="at {x:g} it is 2",
        paper="2",
        rule="within {limit}.",
        differs="Noise.",
        by="packs",
    )
    claim = texts.ClaimTable({"two": text})
    holds, differs = (claim("two", "2.1", ours, x=0.5, limit=1) for ours in (True, False))
    assert (holds.claim, holds.holds, holds.why) == ("at 0.5 it is 2", True, "Rule: within 1.")
    assert (differs.holds, differs.why) == (False, "Rule: within 1. Noise.")


@pytest.mark.parametrize("study", ["detection", "tuning", "forwarding-policies", "io-resources"])
def test_a_reason_has_a_figure_of_the_run(study: str) -> None:
    """Why a claim does not hold is something that the study computes, never a guess."""
    reasons = {name: text.differs for name, text in texts.claims_of(study).texts.items()}
    assert [name for name, reason in reasons.items() if reason and "{" not in reason] == []
    guesses = ("unknown", "may be", "perhaps", "probably")
    assert [name for name, reason in reasons.items() if any(g in reason for g in guesses)] == []
