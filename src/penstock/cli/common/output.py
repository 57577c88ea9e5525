"""Printing results: as tables for people, as JSON for programs."""

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from penstock.cli.common.terminal import json_echo
from penstock.printable import printable
from penstock.progress import console
from penstock.units import show_seconds, show_volume

if TYPE_CHECKING:
    from rich.table import Table

# Rich takes longer to import than many verbs take to run, so it is imported where a table is drawn.

WRAPPED = 40
"""Columns of text are wrapped to this width before others are left out."""
GAP = 2
"""Blanks between two columns."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def emit_json(result: Any) -> None:
    """Print a result as JSON; NaN and infinite numbers become null."""
    json_echo(json_text(result), nl=False)


def json_text(result: Any) -> str:
    """Return a result as JSON, as `emit_json` prints it."""
    return msgspec.json.format(msgspec.json.encode(finite(result)), indent=2).decode() + "\n"


def emit_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    text: Collection[str] = (),
    drop: Sequence[str] = (),
    width: int | None = None,
) -> list[str]:
    """Print a table; the first column and those in `text` are text, the others are numbers.

    Where the terminal is too narrow, columns of `drop` are left out, in that order, rather than
    words broken. Return those that were.
    """
    terminal = console()
    columns, rows, dropped = _fit(columns, rows, drop, text, width or terminal.width)
    terminal.print(table(columns, rows, title=title, text=text))
    return [" ".join(column.split()) for column in dropped]


def _fit(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    drop: Sequence[str],
    text: Collection[str],
    width: int,
) -> tuple[Sequence[str], Sequence[Sequence[str]], list[str]]:
    """Return a table without the columns that it is too wide for."""
    kept = list(range(len(columns)))

    def needed(k: int) -> int:
        lines = [
            line for cell in (columns[k], *(row[k] for row in rows)) for line in cell.split("\n")
        ]
        longest = max(map(len, lines))
        return min(longest, WRAPPED) if k > 0 and columns[k] in text else longest

    dropped = []
    for column in drop:
        if sum(needed(k) + GAP for k in kept) - GAP <= width:
            break
        if column in columns:
            kept.remove(columns.index(column))
            dropped.append(column)
    return [columns[k] for k in kept], [[row[k] for k in kept] for row in rows], dropped


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    text: Collection[str] = (),
) -> "Table":
    """Return a table as `emit_table` prints it."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    # As Text, so that brackets in names are not markup.
    heading = Text(printable(title, keep="\n"), style="table.title") if title else None
    table = Table(title=heading, title_justify="left", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        left = i == 0 or column in text
        table.add_column(column, justify="left" if left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell, keep="\n")) for cell in row))
    return table


def tuned_value(parameter: str, value: Any) -> str:
    """Return the value of a parameter that is tuned at I/O nodes as text."""
    if value is None:
        return "-"
    show = {"window": show_seconds, "aggregation": show_volume}.get(parameter)
    return str(value) if show is None or isinstance(value, str) else show(value)


def show_scope(scope: str, file_systems: int = 1) -> str:
    """Return what turns are taken on, after the name of a policy; empty: the only file system."""
    if scope == "io-node":
        return " per I/O node"
    return " per file system" if file_systems > 1 else ""


def finite(value: Any) -> Any:
    """Return a result with None instead of NaN and infinite numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return finite(msgspec.to_builtins(value)) if hasattr(value, "__dataclass_fields__") else value
