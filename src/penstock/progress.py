"""Progress of long work on standard error: a bar on a terminal, one line per tenth in a log."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

# Rich takes longer to import than some verbs take to run: import it where it prints.

QUIET_SECONDS = 2.0
"""Work that ends sooner leaves no line in a log."""


def console(*, stderr: bool = False) -> "Console":
    """Return a console that does not cut lines when its output goes to a file."""
    from rich.console import Console  # noqa: PLC0415

    terminal = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if terminal.is_terminal:
        return terminal
    return Console(stderr=stderr, highlight=False, width=160)


class _Plain(logging.Formatter):
    """Formats log lines: what others named forges no line and moves no cursor."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return printable(super().formatException(ei), keep="\n")


def log_to_stderr() -> None:
    """Log what happens on standard error, from level INFO."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Plain("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)


def message(line: str) -> None:
    """Print a line on standard error."""
    print(printable(line), file=sys.stderr, flush=True)


class Progress:
    """How far a piece of work has come."""

    def __init__(
        self,
        label: str,
        total: int,
        *,
        quiet: float = QUIET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label = label
        self._total = total
        self._quiet = quiet
        self._done = 0
        self._tenths = 0
        self._clock = clock
        self._start = clock()
        self._bar: Any = None

    def advance(self, steps: int = 1) -> None:
        """Report that `steps` more steps are done."""
        self.reach(self._done + steps, self._total)

    def reach(self, done: int, total: int) -> None:
        """Report how many steps are done, of a total that may have changed."""
        self._done, self._total = done, total
        if self._bar is not None:
            self._bar[0].update(self._bar[1], completed=done, total=total)
            return
        tenths = done * 10 // total if total else 0
        elapsed = self._clock() - self._start
        if tenths > self._tenths and elapsed > self._quiet:
            self._tenths = tenths
            left = elapsed * (total - done) / done
            about = f"{left / 60:.0f} min" if left > 2 * 60 else f"{left:.0f} s"
            rest = f", about {about} left" if done < total else ""
            message(f"{self._label}: {done}/{total}{rest}")


@contextmanager
def progress(
    label: str,
    total: int,
    *,
    quiet: float = QUIET_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Progress]:
    """Show the progress of `total` steps on standard error until the block ends."""
    state = Progress(label, total, quiet=quiet, clock=clock)
    stderr = console(stderr=True)
    if not stderr.is_terminal:
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
    with Bars(*columns, TimeRemainingColumn(), console=stderr) as bars:
        state._bar = (bars, bars.add_task(label, total=total))
        yield state
