"""A comparison as a campaign: one cell is one workload file under one policy.

The name of a cell contains a digest of everything its figures depend on: the jobs, the policy with
its options (and its file, if it is the user's own), the site and the window. Files and policies can
therefore be added to an existing results directory, and cells whose input has changed run again.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from penstock import __version__
from penstock.campaign.cells import RESULTS, RESUME
from penstock.campaign.executors import ExecutorError, WorkerPool
from penstock.campaign.executors.dispatch import PATIENCE, Piece, complete, result
from penstock.campaign.journal import CellId, Entry, Journal, Value
from penstock.errors import error_prefix
from penstock.policies.base import Sharing
from penstock.sim.evaluate.policy_runs import Task, missing_needs, threads_suffice
from penstock.sim.workload import Workload

VERSION = 1
"""Increase it whenever the same cell would give other figures."""
ARRAYS = (
    "compute",
    "io",
    "offsets",
    "release",
    "nodes",
    "max_share",
    "resource_offsets",
    "resources",
    "barrier",
    "after",
    "profile",
)
LISTS = ("ids", "horizon", "curves", "details")


def journal(directory: Path) -> Journal:
    """Open the journal of a results directory, with the cells that are already finished."""
    header: dict[str, Value] = {"study": "compare", "version": VERSION, "penstock": __version__}
    return Journal(directory / RESULTS, header)


@dataclass(slots=True, kw_only=True)
class Comparison:
    """Simulates files under policies, one cell each, and collects the figures.

    `settings` are everything figures depend on besides jobs and policy. `read` loads a workload
    file; `advance` is called after every cell. After `run`, `files` has one entry per file with the
    figures by policy, `rows` the same as flat rows, `skipped` the cells that could not be run.
    """

    task: Task
    pool: WorkerPool
    settings: Mapping[str, Any]
    read: Callable[[Path], Workload]
    advance: Callable[[], None]
    journal: Journal | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    rows: list[dict[str, Value]] = field(default_factory=list)
    _paths: list[Path] = field(default_factory=list)
    _finished: dict[tuple[int, str], Entry] = field(default_factory=dict)

    def run(
        self, files: Sequence[Path], policies: Mapping[str, Sharing], *, keep_all: bool
    ) -> None:
        """Run every cell; without `keep_all`, skip policies that need what a file lacks."""
        complete(
            self._pieces(files, policies, keep_all=keep_all),
            self._keep,
            # A file is read only when a worker is free, so that few are in memory.
            room=self.pool.room,
            patience=PATIENCE if self.journal is not None else 0,
        )
        for number, file in enumerate(self.files):
            figures = {}
            for policy in file["policies"]:
                (row,) = self._finished[number, policy].rows
                self.rows.append(row)
                figures[policy] = _figures(row)
            file["policies"] = figures

    def _pieces(
        self, files: Sequence[Path], policies: Mapping[str, Sharing], *, keep_all: bool
    ) -> Iterator[Piece]:
        for number, path in enumerate(files):
            workload = self.read(path)
            missing = {} if keep_all else missing_needs(workload, policies)
            name = _display_name(path)
            for policy, reason in missing.items():
                self.skipped.append({"policy": policy, "file": name, "reason": reason})
                self.advance()
            runnable = {name: policies[name] for name in policies if name not in missing}
            about = {
                "file": name,
                "jobs": len(workload),
                "iterations": workload.iterations,
                "omega": workload.omega,
            }
            self._paths.append(path)
            self.files.append({**about, "policies": list(runnable)})
            light = threads_suffice(workload, runnable, self.task, self.pool.room())
            digest = None if self.journal is None else _digest(workload)
            shared = None
            for policy in runnable:
                cell = (f"{name} under {policy}, {self._key(digest, policy)}", 0.0, 0)
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
            with error_prefix(self._paths[key[0]]):
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
    figures = task.measure(workload, policy).figures()
    figures["begin"], figures["end"] = figures.pop("window")
    row = {**about, "policy": policy, **{key: _plain(value) for key, value in figures.items()}}
    return Entry(cell=cell, seconds=time.perf_counter() - start, rows=[row])


def _plain(value: float) -> Value:
    """Return a number as JSON can store it: NaN and infinity become text."""
    return value if math.isfinite(value) else str(value)


def _figures(row: Mapping[str, Value]) -> dict[str, Any]:
    """Return the figures of a row as numbers."""
    about = ("file", "jobs", "iterations", "omega", "policy")
    figures: dict[str, Any] = {
        key: float(value) if value is not None else math.nan
        for key, value in row.items()
        if key not in about
    }
    figures["window"] = (figures.pop("begin"), figures.pop("end"))
    return figures


def _display_name(path: Path) -> str:
    """Return the path as text, with a replacement for bytes that are not UTF-8."""
    return os.fspath(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _digest(workload: Workload) -> str:
    digest = hashlib.sha256()
    for name in ARRAYS:
        array = getattr(workload, name)
        digest.update(f"{name} {None if array is None else array.shape}".encode())
        if array is not None:
            digest.update(array.tobytes())
    for name in LISTS:
        digest.update(f"{name} {getattr(workload, name)!r}".encode())
    return digest.hexdigest()
