"""Surveys: many short runs of a private deployment, kept one by one, and gone on with."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import click
import msgspec

from penstock.campaign.journal import CellId, Entry, Journal, Value
from penstock.cli.common import live_options
from penstock.live.measure import scratch
from penstock.progress import progress

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey(Generic[T]):
    """What is to be measured: `begin(root, state)` opens a deployment, `take` runs one in it."""

    study: str
    grid: msgspec.Struct
    emulate: str
    seed: int
    seconds: float
    wanted: Sequence[T]
    name: Callable[[T], CellId]
    begin: Callable[[Path, Path], AbstractContextManager[Any]]
    take: Callable[[Any, T], list[dict[str, Value]]]

    def run(self, out: Path, root: Path | None = None) -> list[dict[str, Value]]:
        """Return the rows of all that is wanted; what was measured before is in a file beside.

        A signal ends the command; what is finished by then is kept.
        """
        header: dict[str, Value] = {
            "study": self.study,
            "grid": hashlib.sha256(msgspec.json.encode(self.grid)).hexdigest()[:16],
            "emulated": self.emulate,
            "seed": self.seed,
        }
        with Journal(out.with_name(out.name + ".jsonl"), header) as journal:
            try:
                self._fill(journal, root)
            except scratch.InterruptedRun as signalled:
                kept = sum(self.name(one) in journal.entries for one in self.wanted)
                click.echo(
                    f"penstock: interrupted; {kept} of {len(self.wanted)} runs are kept in "
                    f"{journal.path}, the same command goes on from there",
                    err=True,
                )
                click.get_current_context().exit(128 + signalled.number)
            entries = [journal.entries[name] for name in sorted(map(self.name, self.wanted))]
            return [row for entry in entries for row in entry.rows]

    def _fill(self, journal: Journal, root: Path | None) -> None:
        missing = [one for one in self.wanted if self.name(one) not in journal.entries]
        with ExitStack() as stack:
            stack.enter_context(scratch.interruptible())
            shown = stack.enter_context(progress("measuring", len(self.wanted)))
            shown.advance(len(self.wanted) - len(missing))
            if not missing:
                return
            stack.enter_context(live_options.launch_errors())
            folder = root or stack.enter_context(scratch.in_memory())
            state = stack.enter_context(scratch.private_state())
            begun = stack.enter_context(self.begin(folder, state))
            for one in missing:
                rows = self.take(begun, one)
                journal.add(Entry(cell=self.name(one), seconds=self.seconds, rows=rows))
                shown.advance()
