"""What the guides and the README say of tests, examples and versions is so."""

import ast
import re
from pathlib import Path

import pytest

import penstock
from penstock import config

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
GUIDE = ROOT / "docs/guides/administrators.md"
PAGES = sorted(
    [*(ROOT / "docs/guides").glob("*.md"), ROOT / "docs/get-started/tour.md", ROOT / "README.md"]
)
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def section(text: str, heading: str) -> str:
    """Return what stands below a heading of the second level."""
    parts = re.split(r"^## (.+)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]


def rows(text: str) -> list[str]:
    """Return the rows of the tables in a text, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads = {k for k, line in enumerate(lines) if set(line) <= set("|- ")}
    return [line for k, line in enumerate(lines) if k not in heads and k + 1 not in heads]


def functions(file: Path) -> set[str]:
    return {n.name for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_are_named_are_there(page: Path) -> None:
    for file, name in NAMED.findall(page.read_text()):
        assert name in functions(TESTS / file), f"{file}::{name}"


@pytest.mark.parametrize(("heading", "least"), [("When something dies", 30), ("Security", 6)])
def test_every_row_of_the_table_has_its_test(heading: str, least: int) -> None:
    text = section(GUIDE.read_text(), heading)
    numbers = [row.split("|")[1].strip() for row in rows(text) if re.match(r"\| \d+ \|", row)]
    tests = re.findall(r"^(\d+)\. (.+)$", text, re.M)
    assert numbers == [str(k) for k in range(1, len(numbers) + 1)]
    assert [number for number, _ in tests] == numbers
    assert len(numbers) >= least
    for number, named in tests:
        assert NAMED.search(named), number


@pytest.mark.parametrize("page", ["README.md", "docs/guides/researchers.md"])
def test_the_policy_that_is_shown_is_the_example(page: str) -> None:
    shown = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)[0]
    example = (ROOT / "examples/short_first.py").read_text()
    assert example.endswith(shown)
    assert len([line for line in shown.splitlines() if line]) <= 15


def test_the_newest_change_is_of_this_version() -> None:
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert versions[0] == penstock.__version__


def test_the_first_screen_is_one_claim_one_figure_and_five_lines() -> None:
    first = (ROOT / "README.md").read_text().partition("\n## ")[0]
    typed = re.findall(r"^(?:\$ )?(?:pip|penstock|make) .+$", first, re.M)
    assert (first.count("!["), len(typed)) == (1, 5)
    assert len(first.splitlines()) <= 32


def test_the_site_of_the_guide_is_a_configuration(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
    (tmp_path / "penstock.toml").write_text(text)
    loaded = config.load(tmp_path / "penstock.toml", environment={}).config
    assert (loaded.live.mode, loaded.site.site().bandwidth) == ("observe", 20 * 2**30)
