"""The I/O phases of a job, found by sampling its shared pages. Runs in the agent.

A thread that is killed during a call leaves its slot in the state "in a call"; so does a thread
whose process calls exec. The sampler checks in /proc that such a thread still exists. The ids of
another PID namespace mean nothing here: a call from there counts while there is progress.
"""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from penstock.identities import FileSystemId
from penstock.learn.phases import Began, Ended, PhaseFinder
from penstock.live.protocol.shared_page import SharedPages, SlotOwner

STALLED_SECONDS = 10.0
"""Seconds after which a call of a thread that cannot be found counts no more, unless it waits at a
closed gate. Few calls take so long, and what one loses is a turn: its next call asks again."""
MAX_MARKS = 1024
"""Phase marks accepted per sample: the job writes the counters, and may write anything."""
_MAX_BYTES = 2**63 - 1
_DEAD_STATES = ("Z", "X")


@dataclass(slots=True)
class _Call:
    """A call in progress of a thread whose life cannot be checked."""

    progress: tuple[int, ...]
    since: float
    is_stalled: bool = False


class PhaseSampler:
    """Samples the pages of a job; the caller acts on what a sample yields before the next one."""

    def __init__(self, pages: SharedPages, *, stalled_seconds: float = STALLED_SECONDS) -> None:
        self.finder = PhaseFinder()
        self._pages = pages
        self._stalled_seconds = stalled_seconds
        self._unchecked: dict[SlotOwner, _Call] = {}
        self._marks = (0, 0)
        self._markers: set[SlotOwner] = set()
        """Processes that existed when the current phase was marked: one of them marked it."""
        self._last_call = 0.0
        self._announced = 0  # bytes
        self._before: dict[FileSystemId, int] = {}
        """Bytes by file system when the last phase ended."""
        self.concurrent_calls = 0
        """The largest number of threads that a sample found in a data call at once."""

    def next_sample(self, now: float, interval: float) -> float:
        """Return the seconds to the next sample: `interval`, or less if a phase may end."""
        due = self.finder.due
        return interval if due is None else min(max(due - now, 0.001), interval)

    def take_announced_bytes(self) -> int | None:
        """Return the bytes that the job announced since the last call of this, or None."""
        before, self._announced = self._announced, self._pages.announced_bytes
        announced = self._announced - before
        return announced if 0 < announced <= _MAX_BYTES else None

    def in_call(self, file_system: FileSystemId | None = None) -> bool:
        """Return whether any thread is in a data call, or waits at the gate.

        On one file system, or on any.
        """
        if file_system is None:
            return any(self._calls(thread) for thread, _ in self._pages.threads_in_call())
        return any(
            on == file_system and self._calls(thread)
            for thread, on, _ in self._pages.file_systems_in_call()
        )

    def waiting_on(self) -> set[FileSystemId]:
        """Return the file systems at whose gates threads wait."""
        return self._on(waits=True)

    def _on(self, *, waits: bool) -> set[FileSystemId]:
        calls = self._pages.file_systems_in_call()
        return {on for thread, on, at_gate in calls if at_gate >= waits and self._calls(thread)}

    def moved_on(self, file_systems: Collection[FileSystemId]) -> set[FileSystemId]:
        """Return those of some file systems on which this phase moved as much as a phase does."""
        return {
            each
            for each in file_systems
            if self._since_last_phase().get(each, 0) >= self.finder.small
        }

    def first_file_systems(self) -> set[FileSystemId]:
        """Return the file systems that a phase uses which begins now; empty: not known yet."""
        every = set(self._pages.file_systems)
        if len(every) == 1:
            return every
        if used := self.waiting_on() | self.moved_on(every):
            return used
        if self.finder.marked:
            return set()
        moved = self._since_last_phase()
        return {max(moved, key=moved.__getitem__)} if moved else self._on(waits=False)

    def phase_over(self) -> None:
        """Count bytes by file system from now on for the next phase."""
        if len(self._pages.file_systems) > 1:
            self._before = self._pages.bytes_by_file_system()

    def _since_last_phase(self) -> dict[FileSystemId, int]:
        moved = self._pages.bytes_by_file_system()
        since = {each: size - self._before.get(each, 0) for each, size in moved.items()}
        return {each: size for each, size in since.items() if size > 0}

    def is_waiting(self) -> bool:
        """Return whether any thread waits at the gate."""
        return any(waits and self._calls(thread) for thread, waits in self._pages.threads_in_call())

    def idle_seconds(self, now: float) -> float:
        """Return for how long no thread has been in a call."""
        return 0.0 if self.in_call() else now - min(self._last_call, now)

    def sample(self, now: float) -> Iterator[Began | Ended | None]:
        """Yield the phases that began and ended since the last sample."""
        # Read the marks before the counters: bytes counted after the end of their phase would
        # start a new phase, which the job did not mark.
        marks = self._pages.phase_marks()
        last_call, moved = self._pages.last_call(), self._pages.moved_bytes()
        threads = self._pages.threads_in_call()
        self._note_progress(now, {owner for owner, _ in threads if _is_foreign(owner)})
        threads = [thread for thread in threads if self._calls(thread[0])]
        self.concurrent_calls = max(self.concurrent_calls, len(threads))
        waiting, busy = any(waits for _, waits in threads), bool(threads)
        self._last_call = max(self._last_call, min(last_call / 1e9, now))
        if marks[0] != self._marks[0]:
            self._markers |= set(filter(is_alive, self._pages.processes()))
            self._last_call = now
        yield from self._marked_phases(now, marks, moved)
        self._drop_marks_of_dead_processes()
        yield self.finder.sample(
            now,
            busy=busy,
            last_call=last_call / 1e9,
            moved=moved,
            waiting=waiting,
        )

    def _note_progress(self, now: float, unchecked: set[SlotOwner]) -> None:
        """Note which of these threads make progress in their calls."""
        calls = self._pages.calls_in_progress() if unchecked else {}
        noted: dict[SlotOwner, _Call] = {}
        for owner in unchecked & calls.keys():
            progress, waits_for_turn = calls[owner]
            call = self._unchecked.get(owner)
            if call is None or call.progress != progress:
                call = _Call(progress, now)
            elif waits_for_turn and not call.is_stalled:
                call.since = now
            elif now - call.since >= self._stalled_seconds:
                call.is_stalled = True
            noted[owner] = call
        self._unchecked = noted

    def _calls(self, thread: SlotOwner) -> bool:
        """Return whether a thread that is said to be in a call counts as in one."""
        call = self._unchecked.get(thread)
        return is_alive(thread) and not (call is not None and call.is_stalled)

    def _drop_marks_of_dead_processes(self) -> None:
        """Drop a marked phase once no process is left that could end it."""
        if not self.finder.marked:
            self._markers.clear()
        elif self._markers and not any(map(is_alive, self._markers)):
            self.finder.unmark()

    def _marked_phases(
        self, now: float, marks: tuple[int, int], moved: int
    ) -> Iterator[Began | Ended | None]:
        """Apply the job's own phase marks, in an order that is possible."""
        (old_begins, old_ends), self._marks = self._marks, marks
        begins = min(max(marks[0] - old_begins, 0), MAX_MARKS)
        ends = min(max(marks[1] - old_ends, 0), MAX_MARKS)
        ends_of_old_phases = min(ends, max(old_begins - old_ends, 0))
        for _ in range(ends_of_old_phases):
            yield self.finder.ended(now, moved)
        for _ in range(begins):
            yield self.finder.began(now)
        for _ in range(ends - ends_of_old_phases):
            yield self.finder.ended(now, moved)


def _is_foreign(thread: SlotOwner) -> bool:
    return thread.namespace not in (0, _pid_namespace())


def is_alive(thread: SlotOwner) -> bool:
    """Return whether a thread lives, or its process if the thread's id is unknown.

    A zombie is dead. Return True if nothing can be found out: ids of another PID namespace mean
    nothing here.
    """
    if _is_foreign(thread):
        return True
    try:
        os.kill(thread.pid, 0)
    except ProcessLookupError:
        return False
    except (OverflowError, PermissionError):
        return True
    tasks = Path(f"/proc/{thread.pid}/task")
    try:
        # A process lives for as long as any of its threads, even after the first has ended.
        candidates = [tasks / str(thread.id)] if thread.id else tasks.iterdir()
        return any(map(_is_running, candidates)) or not tasks.is_dir()
    except OSError:
        return True


def _is_running(task: Path) -> bool:
    try:
        stat = (task / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return not stat.rpartition(")")[2].lstrip().startswith(_DEAD_STATES)


@cache
def _pid_namespace() -> int:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino & 0xFFFFFFFF
    except OSError:
        return 0
