"""What a what-if can use: the records of a site, of all its controllers, and the policies."""

import gzip
import inspect
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from penstock import registry
from penstock.errors import InputError, unknown
from penstock.live.http.dispatch import NotFoundError
from penstock.records.reader import LONGEST_LINE

MOST_RUNS, MOST_DAYS = 100, 60
"""The newest runs are listed, and the newest days of each."""
OWN = "own"
"""The choice among allocation policies that leaves jobs the I/O nodes that they had."""
NOT_RECORDED = frozenset({"profile"})
"""Needs of policies that no record contains."""
log = logging.getLogger("penstock.controller")
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
    ended: float | None  # None: it is still being written
    policy: str
    mode: str | None  # at its beginning; None: not recorded
    allocation: str | None  # None: every job had its own I/O nodes
    placement: str | None  # None: the allocation policy placed jobs, too
    parts: int
    bytes: int
    days: list[RecordedDay]  # the newest first


class _Policy(msgspec.Struct):
    policy: str = ""


class Header(msgspec.Struct):
    """The fields of a record's first line that are listed."""

    sharing: _Policy = msgspec.field(default_factory=_Policy)
    allocation: _Policy | None = None
    placement: _Policy | None = None
    mode: str | None = None
    epoch: float = 0.0
    began: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a record."""

    path: Path
    run: str
    day: str
    number: int


def read_header(path: Path) -> Header:
    """Return the first line of a record's file."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        return msgspec.json.decode(file.readline(LONGEST_LINE), type=Header)


class RecordList:
    """The records of a directory; `current` is the run that is being written."""

    def __init__(
        self, directory: Path, current: str, *, read: Callable[[Path], Header] = read_header
    ) -> None:
        self.directory = directory
        self._current, self._read = current, read
        self._headers: dict[str, Header] = {}  # by file: they do not change
        self._lock = threading.Lock()

    def runs(self) -> list[RecordedRun]:
        """Return the runs, the newest first; it reads files, so call it in a thread."""
        with self._lock:  # a second thread finds the headers read
            by_run: dict[str, list[Part]] = {}
            for part in self._parts():
                by_run.setdefault(part.run, []).append(part)
            newest = sorted(by_run.values(), key=lambda parts: parts[-1].path.name, reverse=True)
            newest = newest[:MOST_RUNS]
            firsts = {parts[0].path.name for parts in newest}
            self._headers = {name: h for name, h in self._headers.items() if name in firsts}
            runs = [run for parts in newest if (run := self._run(parts)) is not None]
        return sorted(runs, key=lambda run: run.began, reverse=True)

    def files(self, run: str, day: str | None) -> list[str]:
        """Return the files of a run, or of a day of it, in order; empty: there is no such run."""
        parts = [part for part in self._parts() if part.run == run and day in {None, part.day}]
        return [part.path.name for part in parts]

    def _parts(self) -> list[Part]:
        try:
            paths = list(self.directory.iterdir())
        except FileNotFoundError:
            return []  # nothing was recorded yet
        parts = []
        for path in paths:
            if (match := _PART.fullmatch(path.name)) and path.is_file():
                digits = match["day"]
                day = f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"
                parts.append(Part(path, match["run"], day, int(match["part"])))
        return sorted(parts, key=lambda part: (part.run, part.number))

    def _run(self, parts: list[Part]) -> RecordedRun | None:
        first = parts[0].path
        try:
            if first.name not in self._headers:
                self._headers[first.name] = self._read(first)
            header = self._headers[first.name]
            sizes = {part.path: part.path.stat().st_size for part in parts}
            ended = parts[-1].path.stat().st_mtime
        except (OSError, EOFError, msgspec.DecodeError):
            return None  # not a record, or removed meanwhile
        by_day: dict[str, list[int]] = {}
        for part in parts:
            by_day.setdefault(part.day, []).append(sizes[part.path])
        days = sorted(by_day, reverse=True)[:MOST_DAYS]
        return RecordedRun(
            run=parts[0].run,
            began=header.epoch + header.began,
            ended=None if parts[0].run == self._current else ended,
            policy=_without_folder(header.sharing.policy),
            mode=header.mode,
            allocation=_name(header.allocation),
            placement=_name(header.placement),
            parts=len(parts),
            bytes=sum(sizes.values()),
            days=[RecordedDay(day=d, parts=len(by_day[d]), bytes=sum(by_day[d])) for d in days],
        )


def _name(policy: _Policy | None) -> str | None:
    return None if policy is None else _without_folder(policy.policy)


def _without_folder(policy: str) -> str:
    """Return a policy's name; that of a policy file without its folder, which may be private."""
    file, colon, name = policy.rpartition(":")
    return f"{Path(file).name}:{name}" if colon else policy


Kind = Literal["sharing", "allocation", "placement"]
KINDS: tuple[Kind, ...] = ("sharing", "allocation", "placement")


class PolicyChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A policy to choose, and what it must know of a job."""

    name: str
    summary: str
    kind: Kind
    needs: list[str] = []


def policy_choices() -> list[PolicyChoice]:
    """Return the policies that need no options and that a record can feed, by kind and name.

    It imports them, so call it in a thread.
    """
    own = PolicyChoice(
        name=OWN, summary="Jobs keep the I/O nodes that they had.", kind="allocation"
    )
    return [own, *(choice for kind in KINDS for choice in _choices(kind))]


def _choices(kind: Kind) -> Iterator[PolicyChoice]:
    for name in sorted(registry.table(kind)):
        try:
            policy = registry.load(kind, name)
            needs_options = inspect.Parameter.empty in registry.options(policy).values()
            needs = frozenset(getattr(policy, "needs", ()))
        except Exception as error:  # a third party's package may be broken
            log.warning("policy %s cannot be loaded: %s", name, error)
            continue
        if needs_options or needs & NOT_RECORDED:
            continue
        module = sys.modules.get(policy.__module__)
        text = inspect.cleandoc((module and module.__doc__) or policy.__doc__ or "")
        summary = " ".join(text.split("\n\n")[0].split()).removeprefix(f"{name}: ")
        yield PolicyChoice(name=name, summary=summary, kind=kind, needs=sorted(needs))


def check_policies(kind: Kind, names: list[str], policies: list[PolicyChoice]) -> None:
    """Raise NotFoundError if one of the names is unknown, InputError if one occurs twice."""
    available = [policy.name for policy in policies if policy.kind == kind]
    for name in names:
        if name not in available:
            raise NotFoundError(str(unknown(f"{kind} policy", name, available)))
    if len(set(names)) < len(names):
        raise InputError("a policy is named twice; name each once")
