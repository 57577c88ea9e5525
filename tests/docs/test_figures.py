"""A figure on a page has a command that makes it, and what pages name in passing is there.

Whether a number is right no test here can tell; but where a part of a page states several, it must
say what prints them, and that must exist: a study, a benchmark, a test, a verb with its options.
"""

import re
from collections.abc import Iterator

import click
import pytest
from docs import pages

from penstock import studies
from penstock.cli import penstock
from penstock.cli.common import manual

PAGES = pages.written()
MEASURED = re.compile(r"\d+\.\d{2,}|\d+(?:\.\d+)?%|\d (?:[MG]i?B/s|times as)")
"""What looks like something that was measured or simulated."""
FEW = 3
MADE_BY = re.compile(
    r"penstock [a-z]|make (?:bench|demo|rates|soak|suites|test|wheel)"
    r"|benchmarks/\w+\.py|pytest|test_\w+\.py"
)
SIGNED = {"client", "controller", "data"}
"""What follows `penstock` in the texts that hosts sign for each other, which are no commands."""
_CODE = re.compile(r"```.*?^```", re.S | re.M)
_INLINE = re.compile(r"`(penstock [^`]+)`")
_STUDY = re.compile(r"penstock reproduce ([a-z][\w-]*)")


def parts(text: str) -> list[str]:
    return re.split(r"^(?=#+ )", text, flags=re.M)


@pytest.mark.parametrize("page", [page for page in PAGES if "/decisions/" not in page])
def test_figures_name_the_command_that_makes_them(page: str) -> None:
    for part in parts(PAGES[page]):
        figures = MEASURED.findall(_CODE.sub("", part))
        title = part.partition("\n")[0]
        assert len(figures) < FEW or MADE_BY.search(part), f"{title}: {figures} come from nowhere"


def test_the_rule_finds_figures() -> None:
    """It would be no rule if hardly any part had figures."""
    with_figures = [
        part
        for text in PAGES.values()
        for part in parts(text)
        if len(MEASURED.findall(_CODE.sub("", part))) >= FEW
    ]
    assert len(with_figures) > 10


@pytest.mark.parametrize("page", PAGES)
def test_studies_that_are_named_are_there(page: str) -> None:
    for study in _STUDY.findall(PAGES[page]):
        assert study in {*studies.STUDIES, "all"}, study


def named(text: str) -> Iterator[tuple[list[str], set[str]]]:
    """Yield the words and the options of each command that is named inside a sentence."""
    for command in _INLINE.findall(" ".join(_CODE.sub("", text).split())):
        words = re.split(r" (?:--|\[|-- |\||>|FILE|\.\.\.)", command)[0].split()[1:]
        if words and words[0] in SIGNED:
            continue
        yield words, set(re.findall(r"(?<![\w-])--[a-z][\w-]*", command.partition(" -- ")[0]))


@pytest.mark.parametrize("page", PAGES)
def test_verbs_and_options_named_in_sentences_are_there(page: str) -> None:
    root = click.Context(penstock)
    for words, options in named(PAGES[page]):
        if not words:
            continue
        verb = penstock.get_command(root, words[0])
        assert verb is not None, f"there is no verb {words[0]!r}"
        if isinstance(verb, click.Group) and words[1:]:
            verb = verb.get_command(root, words[1].strip("'\""))
            assert verb is not None, f"there is no verb {' '.join(words[:2])!r}"
        known = {flag for p in verb.params for flag in (*p.opts, *p.secondary_opts)} | {"--help"}
        assert options <= known, f"penstock {' '.join(words)}: {options - known}"


def test_there_is_a_page_for_each_verb_that_is_named() -> None:
    """The reference has every verb, so that whoever meets one in a sentence finds it."""
    there = {page.command for page in manual.pages()}
    assert {
        f"penstock {words[0]}" for t in PAGES.values() for words, _ in named(t) if words
    } <= there
