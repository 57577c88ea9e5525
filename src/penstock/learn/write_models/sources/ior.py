"""Samples from IOR's text (3.x and 4.x), JSON or CSV summary (docs/formats/samples.md).

Only writes count. Repetitions of a test are runs of one sample, as are tests of the same write. A
CSV summary does not say how processes were spread over nodes and files: the caller has to.
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
from penstock.learn.write_models.samples import Sample
from penstock.model.write import Write

KIB, MIB = 2**10, 2**20
OWN, SHARED = "file-per-process", "single-shared-file"
_OPTION = re.compile(r"\s*([A-Za-z][\w /-]*?)\s*[:=]\s*(.*?)\s*")
_CLIENTS = re.compile(r"(\d+) \((\d+) per node\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the caller knows, for outputs that do not say it."""

    cores: int | None = None
    """Processes of a node."""
    shared: bool | None = None


def samples(
    content: str, name: str, *, machine: str, asked: Asked | None = None
) -> tuple[Sample, ...]:
    """Return the samples in an output of that name, whichever of its forms it has."""
    asked = asked or Asked()
    begin = content.lstrip()[:200]
    try:
        if begin.startswith("{"):
            runs = list(_json(content))
        elif begin.startswith("access,"):
            runs = list(_csv(content, asked))
        else:
            runs = list(_text(content))
    except ERRORS as error:
        raise InputError(f"{name}: {_said(error)}") from error
    if not runs:
        raise InputError(f"{name}: no write has a result; was IOR run with -w and to its end?")
    found: dict[tuple[str, Write], list[float]] = {}
    for source, write, seconds in runs:
        found.setdefault((source, write), []).append(seconds)
    return tuple(
        Sample(machine=machine, source=source, write=write, times=tuple(times))
        for (source, write), times in found.items()
    )


ERRORS = (ValueError, TypeError, AttributeError, KeyError, OverflowError, csv.Error)


def _said(error: Exception) -> str:
    """Return what is wrong, in words of IOR rather than of Python."""
    match error:
        case InputError():
            return str(error)
        case KeyError():
            return f"it has no {error}; give all that IOR wrote"
        case msgspec.DecodeError():
            return f"it is damaged or cut short ({reason(error)}); give all that IOR wrote"
        case _:
            return "it is not built as IOR's output is; give all that IOR wrote, as it was"


@contextmanager
def _at(line: int) -> Iterator[None]:
    try:
        yield
    except ERRORS as error:
        raise InputError(f"line {line}: {_said(error)}") from error


Found = tuple[str, Write, float]


def _text(content: str) -> Iterator[Found]:
    """Yield the runs of IOR's own output; options come before the results of their test."""
    version, options, columns = "", dict[str, str](), list[str]()
    for number, line in enumerate(content.splitlines(), start=1):
        words = line.split()
        if line.lstrip().startswith("IOR-"):
            version = words[0].removeprefix("IOR-").rstrip(":")
        elif words[:1] == ["access"] and "total(s)" in words:
            columns = words
        elif columns and words[:1] == ["write"] and len(words) == len(columns):
            with _at(number):
                row = dict(zip(columns, words, strict=True))
                write = _of_options(options, _positive(row["block(KiB)"], "block") * KIB)
                seconds = _positive(row["total(s)"], "time")
            yield _source(version, options), write, seconds
        elif words and (match := _OPTION.fullmatch(line)):
            if match[1] == "api":
                # The first option of a test: another's do not count any more.
                options, columns = {}, []
            options[match[1]] = match[2]


def _source(version: str, options: Mapping[str, str]) -> str:
    interface = options.get("api", "").split()
    return " ".join(["IOR", version]).strip() + (f", {interface[0]}" if interface else "")


def _of_options(options: Mapping[str, str], block: float) -> Write:
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
        raise InputError(f"{tasks} tasks, {cores} on a node: both should be one or more")
    cores = min(cores, tasks)
    return Write(nodes=-(-tasks // cores), cores=cores, **rest)


def _json(content: str) -> Iterator[Found]:
    """Yield the runs of a JSON summary."""
    told = msgspec.json.decode(content)
    version = str(told.get("Version", ""))
    for test in told["tests"]:
        given, options = test["Parameters"], test["Options"]
        striped = _whole(given.get("lustre_stripe_count", 0) or 0, "lustre_stripe_count")
        size = float(given.get("lustre_stripe_size", 0) or 0)
        segments = _whole(given["segmentCount"], "segmentCount")
        write = _write(
            tasks=_whole(options["tasks"], "tasks"),
            cores=_whole(options["clients per node"], "clients per node"),
            burst=_positive(given["blockSize"], "blockSize") * segments,
            shared=not _whole(given["filePerProc"], "filePerProc"),
            stripe_count=striped if striped > 0 else None,
            stripe_size=size if size > 0 else None,
        )
        # Some versions have the results beside the options, some inside, some in lists of lists.
        results = test["Results"] if "Results" in test else options["Results"]
        for one in _flat(results):
            if one["access"] == "write":
                source = f"IOR {version}".strip().replace("IOR IOR-", "IOR ")
                yield f"{source}, {given['api']}", write, _positive(one["totalTime"], "time")


def _flat(results: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for one in results:
        if isinstance(one, list):
            yield from _flat(one)
        else:
            yield one


def _csv(content: str, asked: Asked) -> Iterator[Found]:
    """Yield the runs of a CSV summary, of processes that the caller has told about."""
    if asked.cores is None or asked.shared is None:
        raise InputError(
            "a CSV summary does not say how many processes a node had, nor whether they shared "
            "a file; give --cores, and --shared or --file-per-process"
        )
    table = csv.DictReader(io.StringIO(content))
    for row in table:
        if row["access"] != "write":
            continue
        with _at(table.line_num):
            tasks = _whole(row["numTasks"], "numTasks")
            seconds = _positive(row["total(s)"], "time")
            block = _positive(row["block(KiB)"], "block") * KIB
            moved = _positive(row["bw(MiB/s)"], "bandwidth") * MIB * seconds
            burst = block * max(1, round(moved / (block * max(1, tasks))))
            write = _write(tasks=tasks, cores=asked.cores, burst=burst, shared=asked.shared)
        yield "IOR", write, seconds


def _positive(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (ValueError, TypeError):
        number = math.nan
    if not 0 < number < math.inf:
        raise InputError(f"a {what} of {value}; it should be above zero")
    return number


def _whole(value: Any, what: str) -> int:
    try:
        return int(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{what} is {value!r}; it should be a whole number") from error
