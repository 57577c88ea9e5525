"""Samples from IOR's output: text of 3.x and 4.x, JSON or CSV (docs/formats/samples.md).

Only writes count. Repetitions of a test are runs of one sample, as are tests of the same write. A
CSV summary does not contain processes per node, nor whether files are shared: the caller must.

The bytes of a write are those that IOR moved. A run that ends by time (-D) moves less than its
options ask for, and says so in a warning before its result; where the log is kept apart, bandwidth
times seconds tell.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock import units
from penstock.errors import InputError
from penstock.files import reason
from penstock.learn.write_models.samples import Sample, from_runs
from penstock.model.write import Write

KIB, MIB = 2**10, 2**20
OWN, SHARED = "file-per-process", "single-shared-file"
_OPTION = re.compile(r"\s*([A-Za-z][\w /-]*?)\s*[:=]\s*(.*?)\s*")
_CLIENTS = re.compile(r"(\d+) \((\d+) per node\)")
_MOVED = re.compile(r"WARNING: Using actual aggregate bytes moved\s*=\s*(\d+)")
_JSON = re.compile(r"\s*(?:IOR-(?P<version>\S+):[^\n]*\n\s*)?\{")
_PAIR = re.compile(r'"(?P<key>[^"\n]*)":\s*(?:"(?P<text>[^"\n]*)"|(?P<other>[^\s,"{}\[\]]+)|\{)')
_RANKS = "access,rank,"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How processes are spread over nodes and files, for outputs that do not contain it."""

    cores: int | None = None
    """Processes per node."""
    shared: bool | None = None


def samples(
    content: str, name: str, *, machine: str, layout: Layout | None = None
) -> tuple[Sample, ...]:
    """Return the samples in the content of the output `name`, of any form."""
    begin = content.lstrip()[:200]
    try:
        if _JSON.match(content):
            runs = list(_json(content))
        elif begin.startswith(_RANKS):
            raise InputError("it has one row per rank; give the output that IOR printed")
        elif begin.startswith("access,"):
            runs = list(_csv(content, layout or Layout()))
        else:
            runs = list(_text(content))
    except ERRORS as error:
        raise InputError(f"{name}: {_explain(error)}") from error
    if not runs:
        raise InputError(f"{name}: no write has a result; was IOR run with -w and to its end?")
    return from_runs(machine, runs)


ERRORS = (ValueError, TypeError, AttributeError, KeyError, OverflowError, csv.Error)


def _explain(error: Exception) -> str:
    """Return what is wrong in terms of IOR rather than of Python."""
    match error:
        case InputError():
            return str(error)
        case KeyError():
            return f"it has no {error}; give all that IOR wrote"
        case msgspec.DecodeError():
            return f"it is damaged or cut short ({reason(error)}); give all that IOR wrote"
        case _:
            return "it does not have the form of IOR's output; give all that IOR wrote, unchanged"


@contextmanager
def _line_errors(line: int) -> Iterator[None]:
    try:
        yield
    except ERRORS as error:
        raise InputError(f"line {line}: {_explain(error)}") from error


Result = tuple[str, Write, float]
"""Source, write and seconds of one run."""


def _text(content: str) -> Iterator[Result]:
    """Yield the runs of IOR's own output; options come before the results of their test."""
    version, options, columns = "", dict[str, str](), list[str]()
    warned: int | None = None
    for number, line in enumerate(content.splitlines(), start=1):
        words = line.split()
        if line.lstrip().startswith("IOR-"):
            version = words[0].removeprefix("IOR-").rstrip(":")
        elif words[:1] == ["access"] and "total(s)" in words:
            columns = words
        elif match := _MOVED.match(line):
            warned = int(match[1])
        elif columns and len(words) == len(columns):
            if words[0] == "write":
                with _line_errors(number):
                    row = dict(zip(columns, words, strict=True))
                    write = _write_from_options(options, row, warned)
                    seconds = _positive(row["total(s)"], "time")
                yield _source(version, options.get("api", "")), write, seconds
            warned = None
        elif words and (match := _OPTION.fullmatch(line)):
            if match[1] == "api":
                # It is the first option of a test, and ends the previous test.
                options, columns = {}, []
            options[match[1]] = match[2]


def _source(version: str, interface: str) -> str:
    api = interface.partition(" ")[0]
    return " ".join(["IOR", version]).strip() + (f", {api}" if api else "")


def _write_from_options(
    options: Mapping[str, str], row: Mapping[str, str], warned: int | None
) -> Write:
    if "clients" in options:  # 3.0 and 3.1
        match = _CLIENTS.fullmatch(options["clients"])
        if match is None:
            raise InputError(f"clients are {options['clients']!r}; they should be '8 (4 per node)'")
        tasks, cores = int(match[1]), int(match[2])
    else:
        tasks = _whole(options["tasks"], "tasks")
        cores = _whole(options["clients per node"], "clients per node")
    count, size = options.get("stripe count", ""), options.get("Lustre stripe size", "")
    return _write(
        tasks=tasks,
        cores=cores,
        nodes=_whole(options.get("nodes", 0), "nodes"),
        volume=_volume(
            _positive(row["block(KiB)"], "block") * KIB * max(1, tasks),
            _whole(options.get("segments", 0), "segments"),
            row["bw(MiB/s)"],
            row["total(s)"],
            warned,
        ),
        shared=_shared(options["access"]),
        stripe_count=int(count) if count.isdecimal() else None,
        stripe_size=units.volume(size) if size[:1].isdecimal() else None,
    )


def _volume(
    segment: float, segments: int, bandwidth: str, seconds: str, warned: int | None
) -> float:
    """Return the bytes that all processes moved.

    `segment` are the bytes of one segment of all processes; 0 `segments`: their number is not
    known. Bandwidth times seconds have the printed digits only: a whole number of segments that
    they allow for is exact.
    """
    if warned is not None:
        return _positive(warned, "volume")
    rate, time = _positive(bandwidth, "bandwidth"), _positive(seconds, "time")
    moved = rate * MIB * time
    whole = segment * (segments or round(moved / segment))
    slack = _half_digit(bandwidth) / rate + _half_digit(seconds) / time
    return whole if abs(moved - whole) <= slack * moved else moved


def _half_digit(number: str) -> float:
    """Return half of a printed number's last digit."""
    return 0.5 * 10.0 ** -len(number.partition(".")[2])


def _shared(access: str) -> bool:
    kind = access.partition(",")[0].strip()
    if kind not in (OWN, SHARED):
        raise InputError(f"access is {access!r}; it should be {OWN} or {SHARED}")
    return kind == SHARED


def _write(*, tasks: int, cores: int, nodes: int = 0, volume: float, **rest: Any) -> Write:
    """Return the write of `tasks` processes; 0 `nodes`: their number is not known.

    IOR counts the processes of its first node. Where nodes are not filled evenly, all have as many
    as the fullest needs at least, and bursts are smaller, so that nodes and bytes are right.
    """
    if tasks < 1 or cores < 1:
        raise InputError(f"{tasks} tasks, {cores} per node: both must be one or more")
    nodes = min(nodes, tasks) if nodes > 0 else -(-tasks // min(cores, tasks))
    cores = -(-tasks // nodes)
    return Write(nodes=nodes, cores=cores, burst=volume / (nodes * cores), **rest)


def _json(content: str) -> Iterator[Result]:
    """Yield the runs of a JSON summary, read as the pairs in it.

    IOR prints its log into it, and the ranks of 3.2 print brackets: it may be whole without being
    JSON.
    """
    try:
        msgspec.json.decode(content)
    except msgspec.DecodeError:
        if '"Finished"' not in content:
            raise
    banner = _JSON.match(content)
    version = (banner and banner["version"]) or ""
    options, result = dict[str, str](), dict[str, str]()
    warned: int | None = None
    for match in re.finditer(f"{_PAIR.pattern}|{_MOVED.pattern}", content):
        key = match["key"]
        value = match["other"] if match["text"] is None else match["text"]
        if key is None:
            warned = int(match[match.lastindex or 0])
        elif key == "Parameters":
            options, result = {}, {}
        elif key == "access" and value not in (OWN, SHARED):
            result = {key: value}
        elif not result:
            version = value.removeprefix("IOR-") if key == "Version" else version
            options[key] = value
        elif key == "totalTime":
            if result["access"] == "write":
                write = _write_from_json(options, result | {key: value}, warned)
                yield _source(version, options["api"]), write, _positive(value, "time")
            warned = None
        else:
            result[key] = value


def _write_from_json(
    options: Mapping[str, str], result: Mapping[str, str], warned: int | None
) -> Write:
    striped = _whole(options.get("lustre_stripe_count", 0), "lustre_stripe_count")
    size = float(options.get("lustre_stripe_size", 0))
    segments = _whole(options["segmentCount"], "segmentCount")
    tasks = _whole(options["tasks"], "tasks")
    block = _positive(options["blockSize"], "blockSize")
    return _write(
        tasks=tasks,
        cores=_whole(options["clients per node"], "clients per node"),
        nodes=_whole(options.get("nodes", 0), "nodes"),
        volume=_volume(
            block * max(1, tasks), segments, result["bwMiB"], result["totalTime"], warned
        ),
        shared=not _whole(options["filePerProc"], "filePerProc"),
        stripe_count=striped if striped > 0 else None,
        stripe_size=size if size > 0 else None,
    )


def _csv(content: str, layout: Layout) -> Iterator[Result]:
    """Yield the runs of a CSV summary."""
    if layout.cores is None or layout.shared is None:
        raise InputError(
            "a CSV summary does not say how many processes a node had, nor whether they shared "
            "a file; give --cores, and --shared or --file-per-process"
        )
    table = csv.DictReader(io.StringIO(content))
    warned: int | None = None
    for row in table:
        if match := _MOVED.match(row["access"]):
            warned = int(match[1])
        if row["access"].startswith("WARNING"):
            continue
        if row["access"] == "write":
            with _line_errors(table.line_num):
                tasks = _whole(row["numTasks"], "numTasks")
                segment = _positive(row["block(KiB)"], "block") * KIB * max(1, tasks)
                volume = _volume(segment, 0, row["bw(MiB/s)"], row["total(s)"], warned)
                write = _write(tasks=tasks, cores=layout.cores, volume=volume, shared=layout.shared)
                seconds = _positive(row["total(s)"], "time")
            yield "IOR", write, seconds
        warned = None


def _positive(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (ValueError, TypeError):
        number = math.nan
    if not 0 < number < math.inf:
        raise InputError(f"a {name} of {value}; it should be above zero")
    return number


def _whole(value: Any, name: str) -> int:
    try:
        return int(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{name} is {value!r}; it should be a whole number") from error
