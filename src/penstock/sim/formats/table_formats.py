"""Workloads as tables: CSV with one row per iteration, and the Standard Workload Format."""

import csv
import re
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from penstock import units
from penstock.errors import InputError, unknown
from penstock.files import reason
from penstock.model import Site
from penstock.sim.formats import free_memory
from penstock.sim.workload import Workload

COLUMNS = ("job", "release", "nodes", "compute", "io")
REQUIRED = ("job", "compute", "io")
SWF_FIELDS = 18
SUBMIT, WAIT, RUN, PROCESSORS, REQUESTED, USER, EXECUTABLE = 1, 2, 3, 4, 7, 11, 13


def read_csv(path: Path, site: Site) -> Workload:
    """Read a CSV file with the columns job, release, nodes, compute and io.

    One row per iteration; the rows of a job are in order of time, and rows of other jobs may be
    between them. `release` (default 0) and `nodes` (default 1) may be left out, or empty in all but
    a job's first row. `compute` and `io` are seconds or words, as in JSON.
    """
    number: dict[str, int] = {}
    owner, compute, io = array("q"), array("d"), array("d")
    release, nodes = array("d"), array("q")
    rows = csv.reader(_lines(path), strict=True)
    try:
        column = _header(next(rows, []))
        for row in rows:
            if not row:
                continue
            if len(row) != len(column):
                raise InputError(f"{len(row)} fields; give {len(column)}, as the header has")
            name = row[column["job"]]
            first = name not in number
            j = number.setdefault(name, len(number))
            owner.append(j)
            compute.append(_seconds(row[column["compute"]], "compute"))
            io.append(_io_seconds(row[column["io"]], site))
            start = row[column["release"]] if "release" in column else ""
            width = row[column["nodes"]] if "nodes" in column else ""
            if first:
                release.append(_seconds(start, "release") if start else 0.0)
                nodes.append(_count(width, "nodes") if width else 1)
            elif start and _seconds(start, "release") != release[j]:
                raise InputError(f"release of job {name!r} is {start}, but {release[j]:g} before")
            elif width and _count(width, "nodes") != nodes[j]:
                raise InputError(f"nodes of job {name!r} is {width}, but {nodes[j]} before")
    except (InputError, csv.Error) as error:
        raise InputError(f"line {rows.line_num}: {reason(error)}") from error
    if not number:
        raise InputError("no rows below the header; give one per iteration")
    owners = np.frombuffer(owner, np.int64)
    by_job = np.argsort(owners, kind="stable")
    return Workload(
        compute=np.frombuffer(compute)[by_job],
        io=np.frombuffer(io)[by_job],
        offsets=np.concatenate(([0], np.cumsum(np.bincount(owners)))),
        release=release,
        nodes=nodes,
        ids=list(number),
    )


def read_swf(path: Path, site: Site, *, io_ratio: float | None, w_iter: float | None) -> Workload:
    """Read a Standard Workload Format 2.2 file, and make up the I/O of its jobs.

    SWF has the start and length of a job, but not its I/O. A job's run time is split evenly into
    iterations of about `w_iter` seconds, each of which spends the fraction `io_ratio` in I/O: a
    synthetic workload with real arrivals, not a measurement. With `site.nodes` set, jobs are
    released when they were submitted and queue for nodes; otherwise, when they started. If the
    header has MaxNodes and MaxProcs, processors are converted to nodes; otherwise each counts as a
    node. Jobs without a run time (cancelled, missing) are left out.
    """
    if io_ratio is None or w_iter is None:
        raise InputError(
            "SWF has no I/O; say how to make it up: the part of a job's time (--io-ratio 0.1) and "
            "the length of an iteration (--w-iter '100 s')"
        )
    if not 0 < io_ratio <= 1:
        raise InputError(f"io_ratio is {io_ratio:g}; give a number above 0, at most 1")
    if not 0 < w_iter < float("inf"):
        raise InputError(f"w_iter is {w_iter:g}; give a positive number of seconds")
    ids, details = list[str](), list[dict[str, str | int]]()
    release, run, nodes = array("d"), array("d"), array("q")
    header: dict[str, str] = {}
    for line_number, line in enumerate(_lines(path), 1):
        if line.lstrip().startswith(";"):
            key, _, text = line.lstrip("; \t").partition(":")
            header.setdefault(key.strip(), text.strip())
            continue
        if not line.strip():
            continue
        names, values = _swf_line(line, line_number)
        if values[RUN] <= 0:
            continue
        queued = max(0.0, values[WAIT]) if site.nodes == 0 else 0.0
        processors = next((values[f] for f in (PROCESSORS, REQUESTED) if values[f] > 0), 1)
        ids.append(names[0])
        release.append(max(0.0, values[SUBMIT]) + queued)
        run.append(values[RUN])
        nodes.append(int(processors))
        details.append({"processes": int(processors), **_identity(names)})
    if not ids:
        raise InputError("no job with a run time; give a file of jobs that ran")
    per_node = _processors_per_node(header)
    length = np.frombuffer(run)
    with np.errstate(over="ignore"):
        iterations = np.maximum(1, np.rint(length / w_iter))
    free = free_memory.available()
    if not iterations.sum() < 1e15 or (free is not None and iterations.sum() * 32 > free):
        raise InputError(
            f"iterations of {w_iter:g} s would be {iterations.sum():.3g} in all, "
            "which do not fit in memory; raise w_iter"
        )
    counts = iterations.astype(np.int64)
    return Workload(
        compute=np.repeat((1 - io_ratio) * length / counts, counts),
        io=np.repeat(io_ratio * length / counts, counts),
        offsets=np.concatenate(([0], np.cumsum(counts))),
        release=release,
        ids=ids,
        nodes=np.ceil(np.frombuffer(nodes, np.int64) / per_node).astype(np.int64),
        details=details,
    )


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            yield from file
        except UnicodeDecodeError as error:
            raise InputError("not text in UTF-8; give a text file") from error


def _header(names: list[str]) -> dict[str, int]:
    column: dict[str, int] = {}
    for i, name in enumerate(names):
        key = name.strip().lower()
        if key not in COLUMNS:
            raise unknown("column", key, COLUMNS)
        if key in column:
            raise InputError(f"column {key!r} occurs twice; give each once")
        column[key] = i
    for key in REQUIRED:
        if key not in column:
            raise InputError(
                f"column {key!r} is missing; begin with 'job,release,nodes,compute,io'"
            )
    return column


def _count(text: str, key: str) -> int:
    if re.fullmatch(r"\s*\d{1,18}\s*", text, re.ASCII) is None:
        raise InputError(f"{key} is {text!r}; give a whole number")
    return int(text)


def _seconds(text: str, key: str) -> float:
    try:
        # Much faster than the parser of words, which handles all but plain numbers.
        return float(text) if "_" not in text else units.seconds(text)
    except ValueError:
        try:
            return units.seconds(text)
        except InputError as error:
            raise InputError(f"{key}: {error}") from error


def _io_seconds(text: str, site: Site) -> float:
    if not text[-1:].isalpha() or not units.is_volume(text):
        return _seconds(text, "io")
    if site.bandwidth is None:
        raise InputError(f"io is the volume {text!r}; set site.bandwidth ('2 GiB/s') to read it")
    return units.volume(text) / site.bandwidth


def _swf_line(line: str, number: int) -> tuple[list[str], list[float]]:
    names = line.split()
    if len(names) != SWF_FIELDS:
        raise InputError(
            f"line {number} has {len(names)} fields; SWF has {SWF_FIELDS} (-1 where unknown)"
        )
    try:
        values = [float(name) for name in names]
    except ValueError as error:
        raise InputError(f"line {number}: {reason(error)}; give numbers, -1 if unknown") from error
    if not all(abs(value) < 1e15 for value in values):
        raise InputError(f"line {number} has a number that is not finite; give numbers below 1e15")
    return names, values


def _identity(names: list[str]) -> dict[str, str]:
    fields = {"user": names[USER], "executable": names[EXECUTABLE]}
    return {key: name for key, name in fields.items() if not name.startswith("-")}


def _processors_per_node(header: dict[str, str]) -> float:
    def count(key: str) -> int:
        match = re.match(r"\d{1,9}(?!\d)", header.get(key, ""))
        return int(match[0]) if match else 0

    nodes, processors = count("MaxNodes"), count("MaxProcs")
    return max(1.0, processors / nodes) if nodes and processors else 1.0
