"""A comparison as a campaign: one cell is one workload under one policy.

The name of a cell contains a digest of everything its figures depend on: the jobs, the policy with
its options (and its file, if it is the user's own), the site and the window. Files, seeds and
policies can therefore be added to an existing results directory, and cells whose input has changed
run again.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from penstock import __version__
from penstock.campaign.cells import RESULTS, RESUME
from penstock.campaign.executors import ExecutorError, WorkerPool
from penstock.campaign.executors.dispatch import PATIENCE, Piece, complete, result
from penstock.campaign.journal import CellId, Entry, Journal, Value
from penstock.errors import error_prefix
from penstock.sim.workload import Workload

VERSION = 3
"""Increase it whenever the same cell would give other figures."""
LISTS = ("ids", "details")


class Task(Protocol):
    """Runs one workload under one of several policies; it travels to workers."""

    @property
    def options(self) -> Mapping[str, Mapping[str, Any]]:
        """The options of policies that have some, by policy."""
        ...

    def figures(self, workload: Workload, policy: str) -> dict[str, Any]:
        """Return the metrics of a policy on a workload."""
        ...

    def missing(self, workload: Workload, policies: Iterable[str]) -> dict[str, str]:
        """Return the policies that need what this workload lacks, each with the reason."""
        ...

    def light(self, workload: Workload, policies: Sequence[str], workers: int) -> bool:
        """Return True if threads are as fast as processes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A workload that takes part: from which file, and with which seed if there are several."""

    file: str
    workload: Workload
    seed: int | None = None
    point: str = ""
    """The point of a sweep, as "omega=0.5"."""

    @property
    def name(self) -> str:
        """Return its name in the journal."""
        seed = "" if self.seed is None else f"seed {self.seed}"
        return ", ".join(filter(None, (self.file, self.point, seed)))


def journal(directory: Path) -> Journal:
    """Open the journal of a results directory, with the cells that are already finished."""
    header: dict[str, Value] = {"study": "compare", "version": VERSION, "penstock": __version__}
    return Journal(directory / RESULTS, header)


@dataclass(slots=True, kw_only=True)
class Comparison:
    """Simulates workloads under policies, one cell each, and collects the figures.

    `settings` are everything figures depend on besides jobs and policy. `advance` is called after
    every cell. After `run`, `files` has one entry per workload with the figures by policy, `rows`
    the same as flat rows, `skipped` the cells that could not be run.
    """

    task: Task
    pool: WorkerPool
    settings: Mapping[str, Any]
    advance: Callable[[], None]
    journal: Journal | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    rows: list[dict[str, Value]] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _finished: dict[tuple[int, str], Entry] = field(default_factory=dict)

    def run(self, entrants: Iterable[Entrant], policies: Sequence[str], *, keep_all: bool) -> None:
        """Run every cell; without `keep_all`, skip policies that need what a file lacks."""
        complete(
            self._pieces(entrants, policies, keep_all=keep_all),
            self._keep,
            # The next workload is made only when a worker is free, so that few are in memory.
            room=self.pool.room,
            patience=PATIENCE if self.journal is not None else 0,
        )
        for number, file in enumerate(self.files):
            figures = {}
            for policy in file["policies"]:
                (row,) = self._finished[number, policy].rows
                self.rows.append(row)
                figures[policy] = _figures(row, file)
            file["policies"] = figures

    def _pieces(
        self, entrants: Iterable[Entrant], policies: Sequence[str], *, keep_all: bool
    ) -> Iterator[Piece]:
        for number, entrant in enumerate(entrants):
            workload = entrant.workload
            missing = {} if keep_all else self.task.missing(workload, policies)
            for policy, reason in missing.items():
                self._skip(policy, entrant.file, reason)
            runnable = [name for name in policies if name not in missing]
            about: dict[str, Value] = {
                "file": entrant.file,
                **({"point": entrant.point} if entrant.point else {}),
                **({} if entrant.seed is None else {"seed": entrant.seed}),
                "jobs": len(workload),
                "iterations": workload.iterations,
                "omega": workload.omega,
            }
            self._names.append(entrant.file)
            self.files.append({**about, "policies": list(runnable)})
            light = self.task.light(workload, runnable, self.pool.room())
            digest = None if self.journal is None else _digest(workload)
            shared = None
            for policy in runnable:
                key = self._key(digest, policy)
                cell = (f"{entrant.name} under {policy}, {key}", 0.0, 0)
                if self.journal is not None and cell in self.journal.entries:
                    self._finished[number, policy] = self.journal.entries[cell]
                    self.advance()
                    continue
                shared = self.pool.share(workload) if shared is None else shared
                work = partial(simulate_cell, self.task)
                yield Piece(
                    key=(number, policy),
                    executor=self.pool.executor(light=light),
                    call=(work, shared, policy, cell, about),
                )

    def _skip(self, policy: str, file: str, reason: str) -> None:
        entry = {"policy": policy, "file": file, "reason": reason}
        if entry not in self.skipped:
            self.skipped.append(entry)
        self.advance()

    def _key(self, workload: str | None, policy: str) -> str:
        """Return a digest of everything that a cell's figures depend on."""
        if workload is None:
            return ""
        files = {name: file.digest for name, file in self.settings["files"].items()}
        inputs = {
            **self.settings,
            "files": {
                n: d for n, d in files.items() if n == policy or n in self.settings["shared"]
            },
            "workload": workload,
            "policy": policy,
            "options": self.task.options.get(policy, {}),
        }
        text = json.dumps(msgspec.to_builtins(inputs), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _keep(self, key: Hashable, future: "Future[Entry]") -> None:
        assert isinstance(key, tuple)
        if key in self._finished:
            return
        try:
            with error_prefix(self._names[key[0]]):
                entry: Entry = result(future)
        except ExecutorError as error:
            note = "" if self.journal is None else f"; {RESUME}"
            raise type(error)(f"{error}{note}") from error
        if self.journal is not None:
            self.journal.add(entry)
        self._finished[key] = entry
        self.advance()


def simulate_cell(
    task: Task, workload: Workload, policy: str, cell: CellId, about: Mapping[str, Value]
) -> Entry:
    """Simulate a workload under a policy; this runs on the worker."""
    start = time.perf_counter()
    figures = task.figures(workload, policy)
    if "window" in figures:
        figures["begin"], figures["end"] = figures.pop("window")
    row = {**about, "policy": policy, **{key: _plain(value) for key, value in figures.items()}}
    return Entry(cell=cell, seconds=time.perf_counter() - start, rows=[row])


def _plain(value: float) -> Value:
    """Return a number as JSON can store it: NaN and infinity become text."""
    return value if math.isfinite(value) else str(value)


def _figures(row: Mapping[str, Value], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a row as numbers, without what it says of the workload."""
    figures: dict[str, Any] = {
        key: float(value) if value is not None else math.nan
        for key, value in row.items()
        if key not in about and key != "policy"
    }
    if "begin" in figures:
        figures["window"] = (figures.pop("begin"), figures.pop("end"))
    return figures


def _digest(workload: Workload) -> str:
    digest = hashlib.sha256(workload.fingerprint())
    for name in LISTS:
        digest.update(f"{name} {getattr(workload, name)!r}".encode())
    return digest.hexdigest()
