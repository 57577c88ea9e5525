"""Each claim of the threat model names tests, and those exist."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs/live/threat-model.md").read_text()
ROWS = [
    line.strip("| ").split(" | ")
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| claim |")
]
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")

pytestmark = pytest.mark.security


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_claim_has_its_tests(row: list[str]) -> None:
    claim, tests = row
    named = NAMED.findall(tests)
    assert named, claim
    assert NAMED.sub("", tests).strip(", ") == ""  # nothing but names of tests
    for file, name in named:
        tree = ast.parse((TESTS / file).read_text())
        assert name in {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}, file


def test_the_page_has_claims_for_each_form() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.M)[1:]
    assert len(sections) >= 6
    assert all("| claim | test |" in text for text in sections)
