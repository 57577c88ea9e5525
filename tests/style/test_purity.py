"""What decides is a function of its arguments: no file, and no chance without a seed.

The import contract in `pyproject.toml` forbids modules (clocks, sockets, processes); this is what
needs no import of its own.
"""

import ast
from pathlib import Path

import pytest

from penstock.policies._support.purity import impure_imports, impurities

SOURCE = Path(__file__).parents[2] / "src" / "penstock"
PURE = (
    *("policies", "model", "core"),
    *(f"learn/{name}.py" for name in ("convergence", "curves", "periods", "phases")),
)


@pytest.mark.parametrize("place", PURE)
def test_what_decides_uses_no_file_and_no_chance_of_its_own(place: str) -> None:
    path = SOURCE / place
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert files
    assert [
        f"{file.relative_to(SOURCE)}:{line}: {what}"
        for file in files
        for line, what in impurities(ast.parse(file.read_text()))
    ] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("open('a')", ["open"]),
        ("read = open", ["open"]),
        ("np.load('a')", ["np.load"]),
        ("np.random.rand(3)", ["np.random.rand"]),
        ("numpy.random.seed(3)", ["np.random.seed"]),
        ("np.random.default_rng()", ["default_rng without a seed"]),
        ("np.random.default_rng(None)", ["default_rng without a seed"]),
        ("np.random.default_rng(seed=None)", ["default_rng without a seed"]),
        ("from numpy.random import default_rng", ["import of numpy.random"]),
        ("import numpy.random as r", ["import of numpy.random"]),
        ("from numpy import random", ["numpy.random"]),
        ("exit()", ["exit"]),
        ("np.random.default_rng([seed, 1]).integers(3)", []),
        ("def f(rng: np.random.Generator): return self.open(rng.random())", []),
    ],
)
def test_what_counts_as_impure(source: str, expected: list[str]) -> None:
    assert [what for _, what in impurities(ast.parse(source))] == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import time", ["import of time"]),
        ("def f():\n    import os.path as p, math", ["import of os.path"]),
        ("from random import random", ["import of random"]),
        ("from .time import zone\nimport numpy, timeline", []),
    ],
)
def test_what_counts_as_an_impure_import(source: str, expected: list[str]) -> None:
    assert [what for _, what in impure_imports(ast.parse(source))] == expected
