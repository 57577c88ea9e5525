"""The records that a controller and those before it have left, as the dashboard lists them."""

import gzip
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.records.reader import LONGEST_LINE

RUNS, DAYS = 100, 60
"""Runs that are listed, and days of each: the newest ones."""
_PART = re.compile(
    r"record-(?P<day>\d{8})-(?P<time>\d{6})-(?P<run>[0-9a-f]+)-(?P<part>\d{4,})\.jsonl(\.gz)?"
)


class RecordedDay(msgspec.Struct, frozen=True, kw_only=True):
    """A day (UTC) of a run."""

    day: str  # 2026-11-15
    parts: int
    bytes: int


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one controller, from its start to its end."""

    run: str
    began: float
    ended: float | None  # None: it goes on
    policy: str
    parts: int
    bytes: int
    days: list[RecordedDay]  # the newest first


class _Chosen(msgspec.Struct):
    policy: str = ""


class _Header(msgspec.Struct):
    sharing: _Chosen = msgspec.field(default_factory=_Chosen)
    epoch: float = 0.0
    began: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a record."""

    path: Path
    run: str
    day: str
    number: int


class Records:
    """The records of a directory; `running` is the run that is being written."""

    def __init__(self, directory: Path, running: str) -> None:
        self.directory = directory
        self._running = running
        self._headers: dict[str, _Header] = {}  # by file: they do not change
        self._one = threading.Lock()

    def listed(self) -> list[RecordedRun]:
        """Return the runs, the newest first; reads files, so it is for a thread."""
        with self._one:  # who asks at the same time finds the headers read
            return self._listed()

    def _listed(self) -> list[RecordedRun]:
        runs: dict[str, list[Part]] = {}
        for part in self._parts():
            runs.setdefault(part.run, []).append(part)
        newest = sorted(runs.values(), key=lambda parts: parts[-1].path.name, reverse=True)[:RUNS]
        firsts = {parts[0].path.name for parts in newest}
        self._headers = {name: h for name, h in self._headers.items() if name in firsts}
        found = (self._told(parts) for parts in newest)
        return sorted((run for run in found if run), key=lambda run: run.began, reverse=True)

    def files(self, run: str, day: str | None) -> list[str]:
        """Return the files of a run, or of a day of it, in order; none: there is no such."""
        parts = [part for part in self._parts() if part.run == run and day in {None, part.day}]
        return [part.path.name for part in parts]

    def _parts(self) -> list[Part]:
        try:
            paths = list(self.directory.iterdir())
        except FileNotFoundError:
            return []  # nothing was recorded yet
        parts = []
        for path in paths:
            if (told := _PART.fullmatch(path.name)) and path.is_file():
                digits = told["day"]
                day = f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"
                parts.append(Part(path, told["run"], day, int(told["part"])))
        return sorted(parts, key=lambda part: (part.run, part.number))

    def _told(self, parts: list[Part]) -> RecordedRun | None:
        first = parts[0].path
        try:
            if first.name not in self._headers:
                self._headers[first.name] = _header(first)
            header = self._headers[first.name]
            sizes = {part.path: part.path.stat().st_size for part in parts}
            ended = parts[-1].path.stat().st_mtime
        except (OSError, EOFError, msgspec.DecodeError):
            return None  # no record, or removed meanwhile
        days = sorted({part.day for part in parts}, reverse=True)[:DAYS]
        return RecordedRun(
            run=parts[0].run,
            began=header.epoch + header.began,
            ended=None if parts[0].run == self._running else ended,
            policy=_named(header.sharing.policy),
            parts=len(parts),
            bytes=sum(sizes.values()),
            days=[_day(day, [p.path for p in parts if p.day == day], sizes) for day in days],
        )


def _day(day: str, paths: Iterable[Path], sizes: dict[Path, int]) -> RecordedDay:
    of_day = [sizes[path] for path in paths]
    return RecordedDay(day=day, parts=len(of_day), bytes=sum(of_day))


def _named(policy: str) -> str:
    """Return a policy's name; of a file without its folder, which may be a user's."""
    file, colon, name = policy.rpartition(":")
    return f"{Path(file).name}:{name}" if colon else policy


def _header(path: Path) -> _Header:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        return msgspec.json.decode(file.readline(LONGEST_LINE), type=_Header)
