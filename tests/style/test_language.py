"""Names and sentences are those of the field's manuals: what the style guide replaced is gone.

Names are looked for among identifiers of Python, C, C++ and JavaScript, word by word. Phrases are
looked for in the whole text of every file: pages, code, comments, messages, names of tests, the
dashboard, claims and captions in TOML, hooks, units and examples.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = frozenset(
    {"told", "asked", "found", "said", "heard", "theirs", "away", "who", "whom", "whose", "anew"}
    | {"worth", "worths", "witness", "breathe", "last_word", "last_words", "for_ever", "lasting"}
    | {"passing", "talk", "surroundings"}
)
"""Participles, pronouns and metaphors are not names of things."""
HONEST_NAMES = frozenset({"not_found"})
"""Words that name a thing together."""
FORMATS = {
    ("src/penstock/model/observation.py", "asked"),
    ("src/penstock/learn/write_models/advice.py", "worth_it"),
}
"""Names that are columns or keys of files which people keep."""
TO_RENAME = {
    "native": frozenset({"told", "asked", "found", "said", "theirs", "who", "anew", "worth"}),
    "src/penstock/live/http/page": frozenset({"found"}),
}
"""Words that names of C, C++ and JavaScript still have; none is added."""
PHRASES = (
    r"so many|so much|(?-i:is none|are none)(?! of | the )|anew|all the same|ended well"
    r"|faults? of ours|the log has it|nothing to tell apart|past the I/O nodes?|past (?:them|all)"
    r"|amid|ill told|the set of strangers|another than|those live who|is of a user|slurm is asked"
    r"|it has not as many"
    r"|(?:a row|a cell|a line|a file|one) a (?:job|file|node|host|row|cell|policy|phase)"
)
# Between two words there may be the end of a line, of a comment or of a string, and in a test's
# name there is a line below.
PHRASE = re.compile(
    rf"(?<![^\W_])(?:{PHRASES})(?![^\W_])".replace(" ", r"[\s#/*\"'_]+"), re.IGNORECASE
)
TEXTS = frozenset(
    {".py", ".md", ".c", ".h", ".cpp", ".hpp", ".js", ".html", ".css", ".toml", ".sh", ".lua"}
    | {".env", ".service", ".conf", ".yml", ".txt", ""}
)
"""Endings of files that people read; files without an ending are scripts, and the Makefile."""
HONEST = ("not so many", ".is_none()", "begin_anew()")
"""English, and nanobind's, that only looks like one of the phrases; the last is to be renamed."""
NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|#include[^\n]*", re.DOTALL
)
"""Comments and strings of C, C++ and JavaScript."""


def files_of(place: str, endings: frozenset[str]) -> list[Path]:
    """Return the files of a folder, or those of the root itself, that are ours to read."""
    paths = (ROOT / place).rglob("*") if place else ROOT.glob("*")
    return [
        path
        for path in sorted(paths)
        if path.suffix in endings
        and path.is_file()
        and path != Path(__file__)
        and not path.name.startswith(".")
        and not {"build", "fuzz"} & set(path.parts[len(ROOT.parts) :])
    ]


def names_of_python(text: str) -> Iterator[tuple[int, str]]:
    """Yield every identifier that a file defines; a test's name is a sentence."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.alias(asname=str(name)) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("test_"):
                    yield node.lineno, name


def names_of_c(text: str) -> Iterator[tuple[int, str]]:
    """Yield every identifier of a file of C, C++ or JavaScript."""
    code = NO_CODE.sub(lambda match: "\n" * match.group().count("\n"), text)
    for match in re.finditer(r"(?<![\w.])[A-Za-z_]\w*", code):
        yield code.count("\n", 0, match.start()) + 1, match.group()


def wrong_words(name: str) -> set[str]:
    """Return the words of a name that name no thing: AsTold and _as_told have told."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")
    for honest in HONEST_NAMES:
        words = words.replace(honest, "")
    return {word for word in NAMES if f"_{word}_" in f"_{words}_"}


def wrong_names(
    place: str, endings: frozenset[str], allowed: frozenset[str] = frozenset()
) -> list[str]:
    files = files_of(place, endings)
    assert files
    return [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files
        for line, name in (names_of_python if path.suffix == ".py" else names_of_c)(
            path.read_text()
        )
        if wrong_words(name) - allowed and (path.relative_to(ROOT).as_posix(), name) not in FORMATS
    ]


def wrong_phrases(text: str) -> Iterator[tuple[int, str]]:
    for match in PHRASE.finditer(text):
        if not any(honest in text[match.start() - 8 : match.end() + 2] for honest in HONEST):
            yield text.count("\n", 0, match.start()) + 1, match.group()


@pytest.mark.parametrize("place", ["src", "tests", "benchmarks", "examples"])
def test_no_name_is_a_participle_a_pronoun_or_a_metaphor(place: str) -> None:
    assert wrong_names(place, frozenset({".py"})) == []


@pytest.mark.parametrize("place", TO_RENAME)
def test_no_name_of_native_code_or_the_page_is_either(place: str) -> None:
    endings = frozenset({".c", ".h", ".cpp", ".hpp", ".js"})
    assert wrong_names(place, endings, TO_RENAME[place]) == []


@pytest.mark.parametrize(
    "place", ["src", "native", "docs", "examples", "deploy", "benchmarks", "tests", ""]
)
def test_no_text_has_a_phrase_that_was_replaced(place: str) -> None:
    files = files_of(place, TEXTS)
    assert files
    assert [
        f"{path.relative_to(ROOT)}:{line}: {phrase}"
        for path in files
        for line, phrase in wrong_phrases(path.read_text())
    ] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("told = 1", ["told"]),
        ("class Told: pass", ["Told"]),
        ("class AsTold: pass", ["AsTold"]),
        ("def f(_found): ...", ["_found"]),
        ("def _asked_at_once(): ...", ["_asked_at_once"]),
        ("the_last_words = 1", ["the_last_words"]),
        ("import a as asked", ["asked"]),
        ("def test_what_was_asked_is_found(): ...", []),
        ("class NotFoundError: pass", []),
        ("foundation = 1", []),
    ],
)
def test_what_counts_as_a_name(source: str, expected: list[str]) -> None:
    assert [name for _, name in names_of_python(source) if wrong_words(name)] == expected


def test_what_counts_as_a_name_in_c() -> None:
    source = "/* asked\n */ int told_error; // said\nlet whoAsks = 'found';"
    assert [(n, name) for n, name in names_of_c(source) if wrong_words(name)] == [
        (2, "told_error"),
        (3, "whoAsks"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("there are so\nmany", ["so\nmany"]),
        ("# there are so\n    # many", ["so\n    # many"]),
        ('"there are so "\n"many"', ['so "\n"many']),
        ("def test_an_end_that_is_none(): ...", ["is_none"]),
        ("x is None; y is none of ours; not so many", []),
        ("amidst", []),
    ],
)
def test_what_counts_as_a_phrase(text: str, expected: list[str]) -> None:
    assert [phrase for _, phrase in wrong_phrases(text)] == expected
