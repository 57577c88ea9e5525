"""Writes the record of a running controller.

The controller puts lines into a queue; a thread writes them, so that a slow disk delays no turn.
Lines that cannot be written (on a full disk, for example) stay in the queue and are tried again.
Once the queue is full, lines are lost and counted. After a loss a new part begins; its header says
how many lines are missing and which jobs run. A change of mode begins a new part, too: one part has
one mode. Old parts are removed, the oldest first.
"""

import logging
import math
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from penstock.files import reason
from penstock.model import Action, Event, JobEnded, JobId, JobStarted, NodeDown, NodeUp
from penstock.records import lines
from penstock.records.lines import Header

DAY = 86400
BATCH = 1024
"""Lines that are written at once."""
PRUNE_INTERVAL = 3600.0
"""Seconds between two removals of old parts; the start of a part removes them, too."""
_PART = re.compile(r"record-\d{8}-\d{6}-[0-9a-f]+-\d{4,}\.jsonl(\.gz)?")
log = logging.getLogger("penstock.records")

Running = dict[JobId, JobStarted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Parts older than `seconds` are removed, and the oldest parts beyond `bytes` in total."""

    seconds: float = math.inf
    bytes: float = math.inf

    def prune(self, directory: Path, now: float, but: Path | None = None) -> list[Path]:
        """Remove parts that are too old or too many, except one; return the removed ones.

        `now` is in seconds since the epoch.
        """
        if self.seconds == self.bytes == math.inf:
            return []
        parts = [
            (about.st_mtime, path.name, path, about.st_size)
            for path in directory.iterdir()
            if _PART.fullmatch(path.name) and path != but and not path.is_symlink()
            for about in (path.stat(),)
        ]
        left = sum(size for *_, size in parts)
        if but is not None and but.exists():
            left += but.stat().st_size
        oldest, removed = now - self.seconds, []
        for written, _, path, size in sorted(parts):
            if written >= oldest and left <= self.bytes:
                break
            path.unlink(missing_ok=True)
            left -= size
            removed.append(path)
        return removed


KEEP_ALL = Retention()


@dataclass(frozen=True, slots=True)
class _Border:
    """Why a line begins a new part: lines are missing before it, or the header changed."""

    lost: int
    running: Running
    header: Header


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    event: Event
    text: bytes
    after: _Border | None


class RecordWriter:
    """Writes one run's record into a directory, in parts of one day (UTC) or about `size` bytes.

    `write` does not wait for the disk and never raises. A line survives a kill -9 after `flush`
    seconds, or once BATCH lines are queued; resources that come and go before anything else are
    not worth a file. `most` bounds the lines in memory. `append` writes text at the end of a file,
    all of it or nothing.
    """

    def __init__(
        self,
        directory: Path,
        header: Header,
        *,
        size: int = 1 << 28,
        flush: float = 1.0,
        most: int = 100_000,
        keep: Retention = KEEP_ALL,
        append: Callable[[int, bytes, int], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.directory = directory
        self.lost_total = 0
        """Lines that are missing in the record."""
        self.failed_total = 0
        """Writes that failed; each is tried again."""
        self.path: Path | None = None
        """The part that is being written, if any."""
        self.late: Callable[[], Sequence[int]] = tuple
        """Returns which of the arbiter's calls of policies took too long for the event that is
        written."""
        self._header, self._clock, self._wall_clock = header, clock, wall_clock
        self._append = append_all_or_nothing if append is None else append
        self._size, self._flush, self._most, self._keep = size, flush, most, keep
        self._queue: deque[_Line] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._running: Running = {started.job.id: started for started in header.running}
        self._begun = bool(self._running)
        self._lost = 0
        self._number = header.first - 1
        self._next_header = self._last_header = header
        self._thread = threading.Thread(target=self._work, name="record", daemon=True)
        # The attributes below belong to the thread.
        self._batch: list[_Line] = []
        self._part, self._part_running = 0, dict(self._running)
        self._file, self._written, self._day = -1, 0, 0
        self._logged = ""
        self._pruned = -PRUNE_INTERVAL
        self._thread.start()

    def set_modes(self, site: str, users: Mapping[str, str]) -> None:
        """Note the modes that are in force from the next event on."""
        self._next_header = msgspec.structs.replace(
            self._next_header, mode=site, user_modes=dict(users)
        )

    def write(
        self,
        event: Event,
        actions: Sequence[Action] = (),
        moved: int | None = None,
        failed: bool = False,
        seconds: float | None = None,
    ) -> None:
        """Record an event, its actions, and the bytes and seconds of a phase that ended."""
        border = None
        if self._lost or self._next_header != self._last_header:
            border = _Border(self._lost, dict(self._running), self._next_header)
        _update_running(self._running, event)
        self._begun = self._begun or not isinstance(event, NodeUp | NodeDown)
        self._number += 1
        try:
            entry = lines.Entry(
                event=event,
                actions=tuple(actions),
                bytes=moved,
                seconds=seconds,
                failed=failed,
                late=tuple(self.late()),
                number=self._number,
            )
            text = lines.encode(entry)
        except Exception as error:
            log.error("%s cannot be recorded: %s", type(event).__name__, reason(error))
            text = b""
        with self._wake:
            if not text or len(self._queue) >= self._most:
                self._lost += 1
                self.lost_total += 1
                return
            self._lost, self._last_header = 0, self._next_header
            self._queue.append(_Line(self._number, event, text, border))
            if len(self._queue) >= BATCH:
                self._wake.notify()

    @property
    def waiting(self) -> int:
        """Lines that are not written yet."""
        return len(self._queue) + len(self._batch)

    def close(self, within: float = 5.0) -> bool:
        """Write the queued lines; tell whether all were written."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(within)
        return not (self._thread.is_alive() or self.waiting)

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self) -> None:
        closing = False
        while not closing:
            with self._wake:
                self._wake.wait_for(
                    lambda: self._closing or (self._begun and self._is_urgent()),
                    self._flush,
                )
                closing = self._closing
            if not self._begun:
                if closing:
                    self._queue.clear()
                continue
            self._write_all()
            self._prune()
        self.lost_total += len(self._batch) + len(self._queue)
        if self._file >= 0:
            os.close(self._file)

    def _is_urgent(self) -> bool:
        return not self._logged and len(self._queue) >= BATCH

    def _write_all(self) -> None:
        """Write the queue, up to the first line that cannot be written."""
        while True:
            if not self._batch:
                with self._wake:
                    count = min(BATCH, len(self._queue))
                    self._batch = [self._queue.popleft() for _ in range(count)]
            if not self._batch:
                return
            try:
                self._write_batch()
            except Exception as error:  # any error: it is tried again, and jobs are not affected
                self._failed(error)
                return
            if self._logged:
                log.info("the record in %s can be written again", self.directory)
                self._logged = ""

    def _prune(self) -> None:
        if self._clock() - self._pruned < PRUNE_INTERVAL:
            return
        self._pruned = self._clock()
        try:
            for path in self._keep.prune(self.directory, self._wall_clock(), self.path):
                log.info("%s is removed (live.keep-records)", path)
        except FileNotFoundError:
            pass  # nothing is recorded yet, or another process removes parts, too
        except Exception as error:  # as below
            log.error("old records in %s cannot be removed: %s", self.directory, reason(error))

    def _failed(self, error: Exception) -> None:
        self.failed_total += 1
        why = reason(error) or type(error).__name__
        if why != self._logged:
            self._logged = why
            fault = None if isinstance(error, OSError) else error
            log.error("the record in %s cannot be written: %s", self.directory, why, exc_info=fault)

    def _write_batch(self) -> None:
        """Write the batch, or the first lines of it that belong to one part."""
        first = self._batch[0]
        day = self._day_of(first)
        count = next(
            (i for i, x in enumerate(self._batch) if i and (x.after or self._day_of(x) != day)),
            len(self._batch),
        )
        batch = self._batch[:count]
        text = b"".join(line.text for line in batch)
        full = self._written + len(text) > self._size
        if self._file < 0 or first.after or day != self._day or full:
            self._begin_part(first, text)
            self._day = day
        else:
            self._append(self._file, text, self._written)
            self._written += len(text)
        for line in batch:
            _update_running(self._part_running, line.event)
        del self._batch[:count]

    def _day_of(self, line: _Line) -> int:
        return int((self._header.epoch + line.event.time) // DAY)

    def _begin_part(self, first: _Line, text: bytes) -> None:
        """Write a new file with a header and the text, or no file at all."""
        running = first.after.running if first.after else self._part_running
        self._header = first.after.header if first.after else self._header
        header = msgspec.structs.replace(
            self._header,
            part=self._part + 1,
            began=first.event.time if self._part else self._header.began,
            running=list(running.values()),
            lost=first.after.lost if first.after else 0,
            first=first.number,
        )
        text = msgspec.json.encode(header) + b"\n" + text
        when = datetime.fromtimestamp(header.epoch + header.began, UTC)
        name = f"record-{when:%Y%m%d-%H%M%S}-{header.run}-{header.part:04}.jsonl"
        path = self.directory / name
        self.directory.mkdir(parents=True, exist_ok=True)
        # Renamed when complete: a kill leaves no part without a header.
        unfinished = self.directory / f".{name}"
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            self._append(file, text, 0)
            unfinished.rename(path)
        except BaseException:
            os.close(file)
            unfinished.unlink(missing_ok=True)
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._written, self.path = file, len(text), path
        self._pruned = -PRUNE_INTERVAL
        self._part, self._part_running = header.part, dict(running)


def _update_running(running: Running, event: Event) -> None:
    """Update the running jobs."""
    match event:
        case JobStarted():
            running[event.job.id] = event
        case JobEnded():
            running.pop(event.job, None)


def append_all_or_nothing(file: int, text: bytes, end: int) -> None:
    """Append a text to a file of `end` bytes; if that fails, the file stays as it was."""
    rest = memoryview(text)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        os.ftruncate(file, end)
        raise
