"""What pages and docstrings name exists: files, folders, modules, and the nouns of the model."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache

import pytest
from docs import pages
from docs.pages import ROOT

from penstock.registry import POLICIES

RENAMED = re.compile(r"^### Renamed$.*?^(?=##)", re.M | re.S)
"""The part of the changelog that has old names."""
TEXTS = {page: RENAMED.sub("", text) for page, text in pages.written().items()}
BASES = ("", "src", "src/penstock", "tests")
"""The folders that paths are relative to."""
ROOTED = re.compile(
    r"(?<![\w/.~-])((?:src|tests|docs|native|benchmarks|examples|deploy)/[\w./-]*\w)"
)
QUOTED = re.compile(r"`([\w.-]+/[\w./-]*\w)/?`")
DOTTED = re.compile(r"(?<![\w/.$-])penstock(?:\.[A-Za-z_]\w*)+(?![\w/-])")
OF_SITES = re.compile(r"\.|report/|penstock\.(conf|json|rules\.yml|token|toml)$")
"""Files of users and sites: their folders, the pages that they make, and their configuration."""

GROUPS = {f"penstock.{kind}" for kind in POLICIES}
"""Entry points of policies."""


@cache
def docstrings() -> dict[str, str]:
    """Return the docstrings of each file of the program, attributes' included."""
    texts = {}
    for file in sorted((ROOT / "src").rglob("*.py")):
        strings = [
            node.value.value
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ]
        texts[file.relative_to(ROOT).as_posix()] = "\n".join(strings)
    return texts


def paths(text: str) -> Iterator[str]:
    """Yield the paths of the repository that a text names; KIND/NAME.py is any, out/ is made."""
    for path in (*ROOTED.findall(text), *QUOTED.findall(text)):
        first = path.partition("/")[0]
        if (
            OF_SITES.match(path)
            or path.startswith("out/")
            or re.search(r"(^|[/-])[A-Z]{2,}([./]|$)", path)
        ):
            continue
        if any((ROOT / base / first).is_dir() for base in BASES):
            yield path


def exists(path: str) -> bool:
    made = pages.from_code()
    return any((ROOT / base / path).exists() for base in BASES) or any(
        page == path or page.startswith(f"{path}/") for page in made
    )


def resolves(name: str) -> bool:
    """Tell whether a dotted name is a module, or something in one."""
    words = name.split(".")
    for k in range(len(words), 0, -1):
        try:
            value: object = importlib.import_module(".".join(words[:k]))
        except ModuleNotFoundError:
            continue
        for word in words[k:]:
            if not hasattr(value, word):
                return False
            value = getattr(value, word)
        return True
    return False


@pytest.mark.parametrize("source", [*TEXTS, "docstrings"])
def test_paths_that_are_named_exist(source: str) -> None:
    texts = docstrings() if source == "docstrings" else {source: TEXTS[source]}
    assert [(k, p) for k, text in texts.items() for p in paths(text) if not exists(p)] == []


@pytest.mark.parametrize("source", [*TEXTS, "docstrings"])
def test_modules_that_are_named_exist(source: str) -> None:
    texts = docstrings() if source == "docstrings" else {source: TEXTS[source]}
    names = {
        (k, name)
        for k, text in texts.items()
        for name in DOTTED.findall(text)
        if not OF_SITES.match(name) and name not in GROUPS
    }
    assert [(k, name) for k, name in sorted(names) if not resolves(name)] == []


def test_wrong_names_are_found() -> None:
    assert list(paths("see src/penstock/none.py, `live/none` and KIND/NAME.py")) == [
        "src/penstock/none.py",
        "live/none",
    ]
    assert not exists("src/penstock/none.py")
    assert resolves("penstock.learn.detection.model.Model")
    assert not resolves("penstock.learn.none")


@pytest.mark.parametrize(
    ("page", "line"),
    [
        ("CONTRIBUTING.md", r"`src/penstock/model` \| nouns: ([\w, ]+)"),
        ("docs/internals/architecture.md", r"model/ +the nouns: ([\w, ]+)"),
    ],
)
def test_the_nouns_are_modules_of_the_model(page: str, line: str) -> None:
    (nouns,) = re.findall(line, TEXTS[page])
    for noun in nouns.strip().split(", "):
        assert resolves(f"penstock.model.{noun}"), noun
