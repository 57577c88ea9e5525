"""What decides is a function of its arguments: no file, and no chance without a seed.

The import contract in `pyproject.toml` forbids modules (clocks, sockets, processes); this is what
needs no import of its own.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "penstock"
PURE = (
    *("policies", "model", "core"),
    *(f"learn/{name}.py" for name in ("convergence", "curves", "periods", "phases")),
)
BUILTINS = frozenset({"open", "input", "print", "exec", "eval", "__import__"})
SEEDED = frozenset({"default_rng", "Generator", "SeedSequence", "PCG64"})
"""All of numpy.random that has no state of its own."""
FILES = frozenset(
    {"load", "save", "savez", "loadtxt", "savetxt", "genfromtxt", "fromfile", "memmap"}
)


def impurities(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield what reads or writes a file, or draws at random without a seed."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in BUILTINS:
                yield node.lineno, name
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=name) if name in FILES:
                yield node.lineno, f"np.{name}"
            case ast.Attribute(value=ast.Attribute(attr="random"), attr=name) if name not in SEEDED:
                yield node.lineno, f"np.random.{name}"
            case ast.ImportFrom(module="numpy", names=names):
                yield from ((node.lineno, f"numpy.{n.name}") for n in names)
            case (
                ast.ImportFrom(module="numpy.random")
                | ast.Import(names=[ast.alias(name="numpy.random"), *_])
            ):
                yield node.lineno, "import of numpy.random"
            case ast.Call(
                func=ast.Attribute(attr="default_rng" | "SeedSequence" as name),
                args=[] | [ast.Constant(value=None)],
                keywords=[] | [ast.keyword(value=ast.Constant(value=None))],
            ):
                yield node.lineno, f"{name} without a seed"


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
        ("np.random.default_rng([seed, 1]).integers(3)", []),
        ("def f(rng: np.random.Generator): return self.open(rng.random())", []),
    ],
)
def test_what_counts_as_impure(source: str, expected: list[str]) -> None:
    assert [what for _, what in impurities(ast.parse(source))] == expected
