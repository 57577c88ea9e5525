"""Records, written while a controller runs.

The controller puts lines into a queue; a thread writes them, so that a slow disk delays no turn.
What cannot be written (a full disk, say) is kept and tried again, until the queue is full; from
then on lines are lost, and counted. After a loss a new part begins, whose header says how many are
missing and which jobs run.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from penstock.files import reason
from penstock.model import Action, Event, JobEnded, JobId, JobStarted
from penstock.records import lines
from penstock.records.header import Header
from penstock.records.retention import Retention

DAY = 86400
PIECE = 1024
"""Lines that are written at once."""
PRUNED_EVERY = 3600.0
"""Seconds; and whenever a part begins."""
ALL = Retention()
log = logging.getLogger("penstock.records")

Running = dict[JobId, JobStarted]


@dataclass(frozen=True, slots=True)
class _Gap:
    """Lines that are missing here, and the jobs that run behind the gap."""

    lost: int
    running: Running


@dataclass(frozen=True, slots=True)
class _Line:
    event: Event
    text: bytes
    after: _Gap | None


class RecordWriter:
    """Writes one run's record into a directory, in parts of a day (UTC) or about `size` bytes.

    `write` waits for no file and never raises. A line is out of reach of a kill -9 after `flush`
    seconds, or once PIECE lines are there. `most` bounds the lines in memory.
    """

    def __init__(
        self,
        directory: Path,
        header: Header,
        *,
        size: int = 1 << 28,
        flush: float = 1.0,
        most: int = 100_000,
        keep: Retention = ALL,
    ) -> None:
        self.directory = directory
        self.lost_total = 0
        """Lines that are missing in the record."""
        self.failed_total = 0
        """Writes that failed, each of which was or will be tried again."""
        self.path: Path | None = None
        """The part that is being written, once there is one."""
        self._header = header
        self._size, self._flush, self._most, self._keep = size, flush, most, keep
        self._queue: deque[_Line] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._running: Running = {started.job.id: started for started in header.running}
        self._lost = 0
        self._thread = threading.Thread(target=self._work, name="record", daemon=True)
        # Of the thread alone from here on.
        self._piece: list[_Line] = []
        self._part, self._part_running = 0, dict(self._running)
        self._file, self._written, self._day = -1, 0, 0
        self._told = ""
        self._pruned = -PRUNED_EVERY
        self._thread.start()

    def write(
        self,
        event: Event,
        actions: Sequence[Action] = (),
        moved: int | None = None,
        failed: bool = False,
    ) -> None:
        """Put down an event, what was decided on it, and how many bytes a phase moved."""
        gap = _Gap(self._lost, dict(self._running)) if self._lost else None
        _follow(self._running, event)
        try:
            entry = lines.Entry(event=event, actions=tuple(actions), bytes=moved, failed=failed)
            text = lines.encode(entry)
        except Exception as error:
            log.error("%s cannot be recorded: %s", type(event).__name__, reason(error))
            text = b""
        with self._wake:
            if not text or len(self._queue) >= self._most:
                self._lost += 1
                self.lost_total += 1
                return
            self._lost = 0
            self._queue.append(_Line(event, text, gap))
            if len(self._queue) >= PIECE:
                self._wake.notify()

    def close(self, within: float = 5.0) -> bool:
        """Write what is left; return whether all of it could be."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(within)
        return not (self._thread.is_alive() or self._queue or self._piece)

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self) -> None:
        closing = False
        while not closing:
            with self._wake:
                self._wake.wait_for(
                    lambda: self._closing or (not self._told and len(self._queue) >= PIECE),
                    self._flush,
                )
                closing = self._closing
            self._write_all()
            self._prune()
        self.lost_total += len(self._piece) + len(self._queue)
        if self._file >= 0:
            os.close(self._file)

    def _write_all(self) -> None:
        """Write what is in the queue, or up to the first line that cannot be."""
        while True:
            if not self._piece:
                with self._wake:
                    count = min(PIECE, len(self._queue))
                    self._piece = [self._queue.popleft() for _ in range(count)]
            if not self._piece:
                return
            try:
                self._write_piece()
            except Exception as error:  # whatever it is: it is tried again, and a job never knows
                self._failed(error)
                return
            if self._told:
                log.info("the record in %s is written again", self.directory)
                self._told = ""

    def _prune(self) -> None:
        if time.monotonic() - self._pruned < PRUNED_EVERY:
            return
        self._pruned = time.monotonic()
        try:
            for path in self._keep.prune(self.directory, self.path):
                log.info("%s is removed: records are kept no longer", path)
        except FileNotFoundError:
            pass  # nothing is recorded yet, or somebody else removes parts, too
        except Exception as error:  # as below
            log.error("old records in %s cannot be removed: %s", self.directory, reason(error))

    def _failed(self, error: Exception) -> None:
        self.failed_total += 1
        why = reason(error) or type(error).__name__
        if why != self._told:
            self._told = why
            fault = None if isinstance(error, OSError) else error
            log.error("the record in %s cannot be written: %s", self.directory, why, exc_info=fault)

    def _write_piece(self) -> None:
        """Write the piece, or as much of it as belongs into one part."""
        first = self._piece[0]
        day = self._day_of(first)
        count = next(
            (i for i, x in enumerate(self._piece) if i and (x.after or self._day_of(x) != day)),
            len(self._piece),
        )
        piece = self._piece[:count]
        text = b"".join(line.text for line in piece)
        full = self._written + len(text) > self._size
        if self._file < 0 or first.after or day != self._day or full:
            self._begin_part(first, text)
            self._day = day
        else:
            _append(self._file, text, self._written)
            self._written += len(text)
        for line in piece:
            _follow(self._part_running, line.event)
        del self._piece[:count]

    def _day_of(self, line: _Line) -> int:
        return int((self._header.epoch + line.event.time) // DAY)

    def _begin_part(self, first: _Line, text: bytes) -> None:
        """Write a new file with a header and the text, or none at all."""
        running = first.after.running if first.after else self._part_running
        header = msgspec.structs.replace(
            self._header,
            part=self._part + 1,
            began=first.event.time if self._part else self._header.began,
            running=list(running.values()),
            lost=first.after.lost if first.after else 0,
        )
        text = msgspec.json.encode(header) + b"\n" + text
        when = datetime.fromtimestamp(header.epoch + header.began, UTC)
        name = f"record-{when:%Y%m%d-%H%M%S}-{header.run}-{header.part:04}.jsonl"
        path = self.directory / name
        self.directory.mkdir(parents=True, exist_ok=True)
        # Who is killed meanwhile leaves no part without a header.
        unfinished = self.directory / f".{name}"
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            _append(file, text, 0)
            unfinished.rename(path)
        except OSError:
            os.close(file)
            unfinished.unlink(missing_ok=True)
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._written, self.path = file, len(text), path
        self._pruned = -PRUNED_EVERY
        self._part, self._part_running = header.part, dict(running)


def _follow(running: Running, event: Event) -> None:
    """Keep to who runs."""
    match event:
        case JobStarted():
            running[event.job.id] = event
        case JobEnded():
            running.pop(event.job, None)


def _append(file: int, text: bytes, end: int) -> None:
    """Write all of the text behind `end`, or nothing."""
    rest = memoryview(text)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        os.ftruncate(file, end)
        raise
