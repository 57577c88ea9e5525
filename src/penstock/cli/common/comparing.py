"""A comparison as a campaign: a cell is one file under one policy, run anywhere, kept if asked to.

The name of a cell has a digest of all that its figures depend on: the jobs, the policy with its
options and, if it is the user's own, its file, the site, the window. Files and policies can thus be
added to what a directory has, and what has changed is worked out anew.
"""

import hashlib
import json
import math
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from penstock import __version__
from penstock.campaign.campaign import KEPT, RESULTS
from penstock.campaign.executors import ExecutorError, Place
from penstock.campaign.executors.dispatch import PATIENCE, Piece, complete, result
from penstock.campaign.journal import CellId, Entry, Journal, Value
from penstock.cli.common import options, side_by_side
from penstock.policies.base import Sharing
from penstock.progress import Progress
from penstock.sim.workload import Workload

VERSION = 1
"""Rises whenever the same cell would give other figures."""
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
    """Return the finished cells of a directory, open for adding to them."""
    header: dict[str, Value] = {"study": "compare", "version": VERSION, "penstock": __version__}
    return Journal(directory / RESULTS, header)


@dataclass(slots=True, kw_only=True)
class Comparison:
    """Files under policies; `settings` are all that figures depend on besides jobs and policy."""

    task: side_by_side.Task
    place: Place
    settings: Mapping[str, Any]
    reader: options.Reader
    shown: Progress
    journal: Journal | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    rows: list[dict[str, Value]] = field(default_factory=list)
    _paths: list[Path] = field(default_factory=list)
    _finished: dict[tuple[int, str], Entry] = field(default_factory=dict)

    def run(self, files: Sequence[Path], chosen: Mapping[str, Sharing], *, keep_all: bool) -> None:
        """Find each file's figures by policy, and which policies are left out and why."""
        complete(
            self._pieces(files, chosen, keep_all=keep_all),
            self._keep,
            # A file is read when somebody is free to work on it, so that few are in memory.
            room=self.place.room,
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
        self, files: Sequence[Path], chosen: Mapping[str, Sharing], *, keep_all: bool
    ) -> Iterator[Piece]:
        for number, path in enumerate(files):
            workload = self.reader.read(path)
            unfed = {} if keep_all else side_by_side.unfed(workload, chosen)
            name = click.format_filename(path)
            for policy, reason in unfed.items():
                self.skipped.append({"policy": policy, "file": name, "reason": reason})
                self.shown.advance()
            runnable = {policy: made for policy, made in chosen.items() if policy not in unfed}
            about = {
                "file": name,
                "jobs": len(workload),
                "iterations": workload.iterations,
                "omega": workload.omega,
            }
            self._paths.append(path)
            self.files.append({**about, "policies": list(runnable)})
            light = side_by_side.light(workload, runnable, self.task, self.place.room())
            known = None if self.journal is None else _digest(workload)
            shared = None
            for policy in runnable:
                cell = (f"{name} under {policy}, {self._key(known, policy)}", 0.0, 0)
                if self.journal is not None and cell in self.journal.entries:
                    self._finished[number, policy] = self.journal.entries[cell]
                    self.shown.advance()
                    continue
                shared = self.place.share(workload) if shared is None else shared
                work = partial(simulated, self.task)
                yield Piece(
                    key=(number, policy),
                    executor=self.place.executor(light=light),
                    call=(work, shared, policy, cell, about),
                )

    def _key(self, workload: str | None, policy: str) -> str:
        """Return a digest of all that a cell's figures depend on."""
        if workload is None:
            return ""
        files = {name: file.digest for name, file in self.settings["files"].items()}
        what = {
            **self.settings,
            "files": {
                n: d for n, d in files.items() if n == policy or n in self.settings["shared"]
            },
            "workload": workload,
            "policy": policy,
            "options": self.task.options.get(policy, {}),
        }
        text = json.dumps(msgspec.to_builtins(what), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _keep(self, key: Hashable, future: "Future[Entry]") -> None:
        assert isinstance(key, tuple)
        if key in self._finished:
            return
        try:
            with options.about(self._paths[key[0]]):
                entry: Entry = result(future)
        except ExecutorError as error:
            kept = "" if self.journal is None else f"; {KEPT}"
            raise type(error)(f"{error}{kept}") from error
        if self.journal is not None:
            self.journal.add(entry)
        self._finished[key] = entry
        self.shown.advance()


def simulated(
    task: side_by_side.Task,
    workload: Workload,
    policy: str,
    cell: CellId,
    about: Mapping[str, Value],
) -> Entry:
    """Simulate a workload under a policy; runs wherever the work is done."""
    start = time.perf_counter()
    figures = task.measure(workload, policy).figures()
    figures["begin"], figures["end"] = figures.pop("window")
    row = {**about, "policy": policy, **{key: _plain(value) for key, value in figures.items()}}
    return Entry(cell=cell, seconds=time.perf_counter() - start, rows=[row])


def _plain(value: float) -> Value:
    """Return a number as JSON can keep it: what is none becomes a text."""
    return value if math.isfinite(value) else str(value)


def _figures(row: Mapping[str, Value]) -> dict[str, Any]:
    """Return the figures of a row, as they were measured."""
    about = ("file", "jobs", "iterations", "omega", "policy")
    figures: dict[str, Any] = {
        key: float(value) if value is not None else math.nan
        for key, value in row.items()
        if key not in about
    }
    figures["window"] = (figures.pop("begin"), figures.pop("end"))
    return figures


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
