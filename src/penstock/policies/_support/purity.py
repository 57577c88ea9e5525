"""What makes a policy impure, seen in its source: clocks, chance without a seed, files, processes.

Seen in the source is not proved: a module may be imported for a function that is pure, and what a
policy reaches by other ways is not seen.
"""

import ast
from collections.abc import Iterator

MODULES = frozenset(
    {
        *("asyncio", "concurrent", "ctypes", "datetime", "fcntl", "http", "io", "mmap"),
        *("multiprocessing", "os", "pathlib", "random", "requests", "secrets", "select"),
        *("selectors", "shutil", "signal", "socket", "subprocess", "sys", "tempfile"),
        *("threading", "time", "urllib", "uuid"),
    }
)
"""Modules with clocks, chance, files, processes or the network."""
BUILTINS = frozenset({"open", "input", "print", "exec", "eval", "exit", "quit", "__import__"})
SEEDED = frozenset({"default_rng", "Generator", "SeedSequence", "PCG64"})
"""All of numpy.random that has no state of its own."""
FILES = frozenset(
    {"load", "save", "savez", "loadtxt", "savetxt", "genfromtxt", "fromfile", "memmap"}
)


def impurities(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and name of what reads or writes a file, or draws without a seed."""
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


def impure_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and name of every import of a module with clocks, chance, files and so on."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case _:
                continue
        for module in modules:
            if module.partition(".")[0] in MODULES:
                yield node.lineno, f"import of {module}"
