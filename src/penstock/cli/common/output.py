"""Results on the terminal: for people as tables, for machines as JSON, from one result."""

import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Rich takes longer to import than a verb without a table to run: it comes where something is drawn.

as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def emit_json(result: Any) -> None:
    """Print a result as JSON; a number that is none (NaN, infinite) becomes null."""
    click.echo(json_text(result), nl=False)


def json_text(result: Any) -> str:
    """Return a result as JSON, as `emit_json` prints it."""
    return msgspec.json.format(msgspec.json.encode(finite(result)), indent=2).decode() + "\n"


def emit_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    text: Collection[str] = (),
) -> None:
    """Print a table; the first column and those in `text` are text, the others are numbers."""
    console().print(table(columns, rows, title=title, text=text))


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

    drawn = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        left = i == 0 or column in text
        drawn.add_column(column, justify="left" if left else "right", overflow="fold")
    for row in rows:
        # Names of jobs are text, whatever brackets they have.
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def console(*, stderr: bool = False) -> "Console":
    """Return a console that does not cut lines when its output goes to a file."""
    from rich.console import Console  # noqa: PLC0415

    out = Console(stderr=stderr, highlight=False, soft_wrap=False)
    return out if out.is_terminal else Console(stderr=stderr, highlight=False, width=160)


def finite(value: Any) -> Any:
    """Return a result with None for numbers that are none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return finite(msgspec.to_builtins(value)) if hasattr(value, "__dataclass_fields__") else value


QUIET_SECONDS = 2.0
"""A log hears nothing of work that is over sooner."""


class Progress:
    """How far long work has come: a bar on a terminal, a line at each tenth in a log."""

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._told = 0
        self._began = time.monotonic()
        self._bar: Any = None

    def advance(self, steps: int = 1) -> None:
        """Say that so many more steps are done."""
        self.reach(self._done + steps, self._total)

    def reach(self, done: int, total: int) -> None:
        """Say how many steps are done, of a total that may only be known now."""
        self._done, self._total = done, total
        if self._bar is not None:
            self._bar[0].update(self._bar[1], completed=done, total=total)
        elif (
            self._total
            and self._done * 10 // self._total > self._told
            and time.monotonic() - self._began > QUIET_SECONDS
        ):
            self._told = self._done * 10 // self._total
            click.echo(f"{self._label}: {self._done}/{self._total}", err=True)


@contextmanager
def progress(label: str, total: int) -> Iterator[Progress]:
    """Show the progress of `total` steps on standard error until the block ends."""
    state = Progress(label, total)
    err = console(stderr=True)
    if not err.is_terminal:
        yield state
        return
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bars(*columns, TimeRemainingColumn(), console=err) as bars:
        state._bar = (bars, bars.add_task(label, total=total))
        yield state
