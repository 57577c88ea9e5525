"""Names and sentences are those of the field's manuals: what the style guide replaced is gone.

Names are looked for among identifiers, phrases in every string of the program (help texts,
messages, docstrings) and on every page.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = frozenset(
    {"told", "asked", "found", "said", "heard", "theirs", "away", "who", "whom", "whose", "anew"}
    | {"worth", "worths", "witness", "breathe", "last_words", "for_ever", "lasting", "passing"}
    | {"talk", "surroundings"}
)
"""Participles, pronouns and metaphors are not names of things."""
FORMATS = {("src/penstock/model/observation.py", "asked")}
"""Names that are columns of files which people keep."""
PHRASES = re.compile(
    r"\b(so many|so much|(?-i:is none|are none)|anew|all the same|ended well|a fault of ours"
    r"|the log has it|nothing to tell apart|past the I/O nodes?|past them|the set of strangers|amid"
    r"|ill told|(a row|a cell|a line|a file|one) a (job|file|node|host|row|cell|policy|phase))\b",
    re.IGNORECASE,
)
HONEST = ("not so many",)
"""English that only looks like one of the phrases."""


def python_files() -> list[Path]:
    return sorted(
        path
        for folder in ("src", "tests", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__)
    )


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every identifier that a file defines."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name):
                yield node.lineno, name


def words(name: str) -> str:
    """Return a name in the form in which the list has it: AsTold and _as_told are as_told."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


def offences_of_names(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    return [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for line, name in names(tree)
        if words(name) in NAMES and (path.relative_to(ROOT).as_posix(), name) not in FORMATS
    ]


def offences_of_phrases(path: Path, text: str, first: int = 1) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{first + text.count(chr(10), 0, match.start())}: {match.group()}"
        for match in PHRASES.finditer(text)
        if not any(honest in text[match.start() - 8 : match.end()] for honest in HONEST)
    ]


def strings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_no_name_is_a_participle_a_pronoun_or_a_metaphor() -> None:
    assert [offence for path in python_files() for offence in offences_of_names(path)] == []


def test_no_message_or_help_text_has_a_phrase_that_was_replaced() -> None:
    sources = [path for path in python_files() if path.is_relative_to(ROOT / "src")]
    assert [
        offence
        for path in sources
        for line, text in strings(path)
        for offence in offences_of_phrases(path, text, line)
    ] == []


@pytest.mark.parametrize("folder", ["docs", "native", "src/penstock/live/http/page"])
def test_no_page_or_comment_has_a_phrase_that_was_replaced(folder: str) -> None:
    suffixes = {".md", ".c", ".h", ".cpp", ".hpp", ".js", ".html"}
    files = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in suffixes]
    assert files
    assert [o for path in files for o in offences_of_phrases(path, path.read_text())] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("told = 1", ["told"]),
        ("class Told: pass", ["Told"]),
        ("def f(_found): ...", ["_found"]),
        ("import a as asked", ["asked"]),
        ("foundation = not_found = 1", []),
    ],
)
def test_what_counts_as_a_name(source: str, expected: list[str]) -> None:
    assert [name for _, name in names(ast.parse(source)) if words(name) in NAMES] == expected
