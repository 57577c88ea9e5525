"""Samples from IOR's output: text of 3.x and 4.x, JSON or CSV (docs/formats/samples.md).

Only writes count. Repetitions of a test are runs of one sample, as are tests of the same write. A
CSV summary does not contain processes per node, nor whether files are shared: the caller must.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
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
        if begin.startswith("{"):
            runs = list(_json(content))
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
    for number, line in enumerate(content.splitlines(), start=1):
        words = line.split()
        if line.lstrip().startswith("IOR-"):
            version = words[0].removeprefix("IOR-").rstrip(":")
        elif words[:1] == ["access"] and "total(s)" in words:
            columns = words
        elif columns and words[:1] == ["write"] and len(words) == len(columns):
            with _line_errors(number):
                row = dict(zip(columns, words, strict=True))
                write = _write_from_options(options, _positive(row["block(KiB)"], "block") * KIB)
                seconds = _positive(row["total(s)"], "time")
            yield _source(version, options), write, seconds
        elif words and (match := _OPTION.fullmatch(line)):
            if match[1] == "api":
                # It is the first option of a test, and ends the previous test.
                options, columns = {}, []
            options[match[1]] = match[2]


def _source(version: str, options: Mapping[str, str]) -> str:
    interface = options.get("api", "").split()
    return " ".join(["IOR", version]).strip() + (f", {interface[0]}" if interface else "")


def _write_from_options(options: Mapping[str, str], block: float) -> Write:
    if "clients" in options:  # 3.0 and 3.1
        match = _CLIENTS.fullmatch(options["clients"])
        if match is None:
            raise InputError(f"clients are {options['clients']!r}; they should be '8 (4 per node)'")
        tasks, cores = int(match[1]), int(match[2])
    else:
        tasks = _whole(options["tasks"], "tasks")
        cores = _whole(options["clients per node"], "clients per node")
    if "segments" in options:
        burst = block * _whole(options["segments"], "segments")
    else:
        burst = units.volume(options["aggregate filesize"].replace("bytes", "B")) / max(1, tasks)
    count, size = options.get("stripe count", ""), options.get("Lustre stripe size", "")
    return _write(
        tasks=tasks,
        cores=cores,
        burst=burst,
        shared=_shared(options["access"]),
        stripe_count=int(count) if count.isdecimal() else None,
        stripe_size=units.volume(size) if size[:1].isdecimal() else None,
    )


def _shared(access: str) -> bool:
    kind = access.partition(",")[0].strip()
    if kind not in (OWN, SHARED):
        raise InputError(f"access is {access!r}; it should be {OWN} or {SHARED}")
    return kind == SHARED


def _write(*, tasks: int, cores: int, **rest: Any) -> Write:
    if tasks < 1 or cores < 1:
        raise InputError(f"{tasks} tasks, {cores} per node: both must be one or more")
    cores = min(cores, tasks)
    return Write(nodes=-(-tasks // cores), cores=cores, **rest)


def _json(content: str) -> Iterator[Result]:
    """Yield the runs of a JSON summary."""
    summary = msgspec.json.decode(content)
    version = str(summary.get("Version", ""))
    for test in summary["tests"]:
        parameters, options = test["Parameters"], test["Options"]
        striped = _whole(parameters.get("lustre_stripe_count", 0) or 0, "lustre_stripe_count")
        size = float(parameters.get("lustre_stripe_size", 0) or 0)
        segments = _whole(parameters["segmentCount"], "segmentCount")
        write = _write(
            tasks=_whole(options["tasks"], "tasks"),
            cores=_whole(options["clients per node"], "clients per node"),
            burst=_positive(parameters["blockSize"], "blockSize") * segments,
            shared=not _whole(parameters["filePerProc"], "filePerProc"),
            stripe_count=striped if striped > 0 else None,
            stripe_size=size if size > 0 else None,
        )
        # The results are beside the options, inside them, or in lists of lists, by version.
        results = test["Results"] if "Results" in test else options["Results"]
        for one in _flat(results):
            if one["access"] == "write":
                source = f"IOR {version}".strip().replace("IOR IOR-", "IOR ")
                yield f"{source}, {parameters['api']}", write, _positive(one["totalTime"], "time")


def _flat(results: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for one in results:
        if isinstance(one, list):
            yield from _flat(one)
        else:
            yield one


def _csv(content: str, layout: Layout) -> Iterator[Result]:
    """Yield the runs of a CSV summary."""
    if layout.cores is None or layout.shared is None:
        raise InputError(
            "a CSV summary does not say how many processes a node had, nor whether they shared "
            "a file; give --cores, and --shared or --file-per-process"
        )
    table = csv.DictReader(io.StringIO(content))
    for row in table:
        if row["access"] != "write":
            continue
        with _line_errors(table.line_num):
            tasks = _whole(row["numTasks"], "numTasks")
            seconds = _positive(row["total(s)"], "time")
            block = _positive(row["block(KiB)"], "block") * KIB
            moved = _positive(row["bw(MiB/s)"], "bandwidth") * MIB * seconds
            burst = block * max(1, round(moved / (block * max(1, tasks))))
            write = _write(tasks=tasks, cores=layout.cores, burst=burst, shared=layout.shared)
        yield "IOR", write, seconds


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
