"""The one way to people's terminals: text of others' making moves no cursor there."""

import json

import click

from penstock.printable import printable


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text of one or more lines, without what a terminal would obey."""
    lines = str(text).split("\n")
    click.echo("\n".join(printable(line, keep="\t") for line in lines), err=err, nl=nl)


def json_echo(text: str | bytes, *, err: bool = False, nl: bool = True) -> None:
    """Print JSON; what a terminal would obey is escaped, which to programs is the same."""
    text = text.decode() if isinstance(text, bytes) else text
    lines = (line if line.isprintable() else _escaped(line) for line in text.split("\n"))
    click.echo("\n".join(lines), err=err, nl=nl)


def _escaped(line: str) -> str:
    return "".join(json.dumps(c)[1:-1] if printable(c) != c else c for c in line)
