"""What the guides and the README say of tests, examples and versions is so."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from docs import pages

import penstock
from penstock import config

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
GUIDE = ROOT / "docs/guides/administrators.md"
FAILURES = ROOT / "docs/live/failures.md"
GLOSSARY = ROOT / "docs/reference/glossary.md"
BEGIN = (
    "README.md",
    "docs/index.md",
    "docs/get-started/tour.md",
    "docs/guides/administrators.md",
    "docs/guides/researchers.md",
    "docs/guides/scientists.md",
    "docs/internals/architecture.md",
    "docs/live/index.md",
    "docs/live/turns.md",
    "docs/reference/metrics/index.md",
    "docs/simulate/write-a-policy.md",
)
"""Where a reader meets the words for the first time."""
EVIDENCE = tomllib.loads((TESTS / "docs/evidence.toml").read_text())


def section(text: str, heading: str) -> str:
    """Return what stands below a heading of the second level."""
    parts = re.split(r"^## (.+)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]


def numbers(text: str) -> list[str]:
    """Return the numbers of the rows of the tables in a text."""
    return re.findall(r"^\| (\d+) \|", text, re.M)


def functions(file: Path) -> set[str]:
    return {n.name for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize(
    ("topic", "row"), [(topic, row) for topic, rows in EVIDENCE.items() for row in rows]
)
def test_the_evidence_of_a_row_is_a_test(topic: str, row: str) -> None:
    assert EVIDENCE[topic][row]
    for test in EVIDENCE[topic][row]:
        file, _, name = test.partition("::")
        assert name in functions(TESTS / file), test


def test_every_failure_has_its_test() -> None:
    rows = numbers(FAILURES.read_text())
    assert rows == [str(k) for k in range(1, len(rows) + 1)]
    assert rows == list(EVIDENCE["failures"])
    assert len(rows) >= 35


def test_every_row_on_security_has_its_test() -> None:
    text = section(GUIDE.read_text(), "Security")
    assert numbers(text) == list(EVIDENCE["security"]) == [str(k) for k in range(1, 9)]
    for attempt in EVIDENCE["attempts"]:
        assert f"| {attempt} |" in text


@pytest.mark.parametrize("page", sorted({*pages.written()} - {"docs/live/threat-model.md"}))
def test_no_page_names_a_test(page: str) -> None:
    """Names of tests are for those who work on Penstock, or judge its claims of security.

    The others are in evidence.toml.
    """
    assert not re.search(r"::test_\w+", pages.written()[page])
    if page.startswith("docs/") and not page.startswith(("docs/internals/", "docs/decisions/")):
        assert not re.search(r"\btest_\w+\.py", pages.written()[page])


@pytest.mark.parametrize("page", ["README.md", "docs/guides/researchers.md"])
def test_the_policy_that_is_shown_is_the_example(page: str) -> None:
    shown = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)[0]
    example = (ROOT / "examples/short_first.py").read_text()
    assert example.endswith(shown)
    assert len([line for line in shown.splitlines() if line]) <= 15


def test_the_newest_change_is_of_this_version() -> None:
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert versions[0] == penstock.__version__


def test_the_first_screen_is_one_claim_one_figure_and_the_commands_that_do_everything() -> None:
    first = (ROOT / "README.md").read_text().partition("\n## ")[0]
    commands = re.findall(r"^(?:\$ )?(make \w+|pip install|penstock \w+)", first, re.M)
    assert commands == ["make demo", "make test", "pip install"]
    assert first.count("![") == 1
    assert first.count("\n**") == 1
    assert len(first.splitlines()) <= 32


def test_the_glossary_has_the_words_that_people_meet() -> None:
    entries = set(re.findall(r'<a id="([\w-]+)"></a>', GLOSSARY.read_text()))
    assert entries >= {
        *("phase", "turn", "share", "gate", "lease", "fail-open", "application", "curve"),
        *("io-node", "target", "set", "w_iter", "stretch", "yield"),
    }


@pytest.mark.parametrize("page", BEGIN)
def test_a_page_where_readers_begin_links_to_the_glossary(page: str) -> None:
    links = re.findall(r"\]\(([^)#\s]*glossary\.md)(?:#[\w-]+)?\)", (ROOT / page).read_text())
    assert links
    for link in links:
        assert (ROOT / page).parent.joinpath(link).resolve() == GLOSSARY


def test_the_site_of_the_guide_is_a_configuration(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
    (tmp_path / "penstock.toml").write_text(text)
    loaded = config.load(tmp_path / "penstock.toml", environment={}).config
    assert (loaded.live.mode, loaded.site.site().bandwidth) == ("observe", 20 * 2**30)
