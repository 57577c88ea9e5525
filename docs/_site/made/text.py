"""Markdown from what the code says: docstrings, tables, attributes with a text below them."""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

_OWN_PARAGRAPH = re.compile(r"\n(?=Options? `)")


def paragraphs(docstring: str) -> str:
    """Return a docstring as Markdown: each option begins a paragraph, signs are signs."""
    text = _OWN_PARAGRAPH.sub("\n\n", inspect.cleandoc(docstring))
    return "\n\n".join(
        block if block.startswith("    ") else escaped(block) for block in text.split("\n\n")
    )


def escaped(text: str) -> str:
    """Return plain text that Markdown prints as it is; what is in backquotes stays code."""
    return outside_spans(text, lambda p: re.sub(r"([*\[\]])", r"\\\1", p).replace("<", "&lt;"))


def outside_spans(text: str, change: Callable[[str], str]) -> str:
    """Return a text with a change made to all of it but what is in backquotes."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else change(part) for part in parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; bars inside cells do not end them, as they do not in code anyway."""
    lines = [head, ["---"] * len(head), *rows]

    def cell(text: str) -> str:
        return outside_spans(text, lambda part: part.replace("|", "&#124;"))

    return "\n".join(f"| {' | '.join(map(cell, row))} |" for row in lines)


def fenced(text: str, language: str) -> str:
    """Return text as a block of code."""
    return f"```{language}\n{text.strip(chr(10))}\n```"


def commands(*lines: str) -> str:
    """Return commands as a block that a reader can type, and that the tests run."""
    return fenced("\n".join(f"$ {line}" for line in lines), "console")


def attributes(cls: type) -> dict[str, str]:
    """Return the text below each attribute of a class, where there is one."""
    (body,) = (node.body for node in ast.parse(inspect.getsource(cls)).body)  # type: ignore[attr-defined]
    texts = {}
    for attribute, text in pairwise(body):
        if isinstance(attribute, ast.AnnAssign) and isinstance(text, ast.Expr):
            texts[attribute.target.id] = " ".join(inspect.cleandoc(text.value.value).split())  # type: ignore
    return texts
