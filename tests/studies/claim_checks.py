"""What every study's claims have in common."""

import re

from penstock.campaign.journal import Row
from penstock.report.findings import OURS, Basis, Claim, Findings


def find(findings: Findings, part: str) -> Claim:
    (claim,) = [claim for claim in findings.claims if part in claim.claim]
    return claim


def number(row: Row, column: str) -> float:
    value = row[column]
    assert isinstance(value, int | float), (column, value)
    return float(value)


def assert_complete(findings: Findings, least: int) -> None:
    """There are at least this number of claims, no two alike, each with a rule and without gaps.

    Those that we make are ours, whatever the study; and it says what all of them rest on.
    """
    assert findings.basis != Basis()
    assert len(findings.claims) >= least
    for claim in findings.claims:
        assert claim.holds is None or type(claim.holds) is bool, claim
        assert claim.paper, claim
        assert claim.ours, claim
        assert claim.why.startswith("Rule: "), claim
        if claim.claim.startswith("Ours:") or claim.paper in {"not asked", "not in the paper", "-"}:
            assert claim.by == OURS, claim
        assert "nan" not in claim.ours.split(), claim
    names = [claim.claim for claim in findings.claims]
    assert len(set(names)) == len(names)


def assert_reasons(findings: Findings) -> None:
    """A claim that does not hold has a reason from the run, not a guess."""
    for claim in findings.claims:
        if not (claim.holds or claim.depends or claim.apart):
            assert not re.search(r"\b(unknown|guess|perhaps|probably)\b", claim.why), claim
