"""Threads of a job in other PID namespaces than the agent's, as in containers: which of them live.

Their ids mean nothing here, and what a dead one left in its slot looks like a call. So a call
counts while its slot makes progress. After a while without any, its thread is looked for among all
processes that this agent can see; one that is not found is dead. Where a call is long and its
thread cannot be seen from here, its phase ends early: that costs the job its turn, and no data.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from penstock.live.protocol.shared_page import SharedPages, SlotOwner

SILENCE = 5.0
"""Seconds without progress after which a thread is looked for."""
_DEAD_STATES = ("Z", "X")


class OtherNamespaces:
    """The threads of a job in other PID namespaces."""

    def __init__(self, pages: SharedPages, proc: Path = Path("/proc")) -> None:
        self._pages, self._proc = pages, proc
        self._progress: dict[SlotOwner, tuple[int, float]] = {}
        """Calls that a thread has made, and since when it has not made more."""
        self._dead: set[SlotOwner] = set()

    def look(self, now: float) -> None:
        """Find out which threads in a call are dead. Those that wait at a gate hold nothing."""
        calling = {
            thread
            for thread, waits in self._pages.threads_in_call()
            if not waits and is_elsewhere(thread)
        }
        self._progress = {t: known for t, known in self._progress.items() if t in calling}
        self._dead &= calling
        if not calling:
            return
        counts = self._pages.calls_by_thread()
        for thread in calling:
            count = counts.get(thread, 0)
            known, since = self._progress.get(thread, (None, now))
            if known != count:
                self._progress[thread] = count, now
                self._dead.discard(thread)
            elif now - since >= SILENCE and thread not in self._dead:
                self._progress[thread] = count, now
                if not self._is_running(thread):
                    self._dead.add(thread)

    def lives(self, thread: SlotOwner) -> bool:
        """Return whether a thread of another namespace counts as alive."""
        return thread not in self._dead

    def _is_running(self, thread: SlotOwner) -> bool:
        return any(self._is_it(task, thread) for task in self._tasks(thread.namespace))

    def _tasks(self, namespace: int) -> Iterator[Path]:
        """Yield the threads of a namespace, as far as they can be seen from here."""
        for process in self._proc.iterdir():
            if not process.name.isdecimal():
                continue
            with suppress(OSError):  # it has ended, or is another user's
                if (process / "ns/pid").stat().st_ino & 0xFFFFFFFF == namespace:
                    yield from (process / "task").iterdir()

    @staticmethod
    def _is_it(task: Path, thread: SlotOwner) -> bool:
        try:
            lines = (task / "status").read_text(errors="replace").splitlines()
        except OSError:
            return False
        fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        own_id = fields.get("NSpid", "").split()[-1:]
        return own_id == [str(thread.id)] and not fields.get("State", "").startswith(_DEAD_STATES)


def is_elsewhere(thread: SlotOwner) -> bool:
    """Return whether a thread's ids are those of another PID namespace."""
    return thread.namespace not in (0, _own_namespace())


@cache
def _own_namespace() -> int:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino & 0xFFFFFFFF
    except OSError:
        return 0
