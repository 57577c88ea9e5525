"""Writes to the store in the background, so that the controller never waits: one thread, batches.

Of several changes to one key only the newest is written, so the queue is bounded by the number of
keys. Jobs that begin or end are written soon, in one transaction with the totals, so that these
agree after a crash. Progress and knowledge may wait longer: jobs report their counters again. While
the store fails, the controller goes on, and changes wait in memory.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from penstock.learn.knowledge import Knowledge
from penstock.live.protocol.job_record import JobRecord
from penstock.live.store.database import StoreError, one_line
from penstock.live.store.rows import FAMILIES_PER_USER, Family, RecalledKnowledge
from penstock.live.store.store import Changes, Store

log = logging.getLogger("penstock.store")
Key = TypeVar("Key")
Change = TypeVar("Change")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long changes wait, how many may wait, and how long history is kept."""

    soon: float = 0.2
    """Seconds that beginnings and ends wait, to be written together."""
    later: float = 5.0
    """Seconds that progress and knowledge wait."""
    rows: int = 2000
    """Beginnings and ends that are written at once."""
    most: int = 50_000
    """Changes that may wait while the store fails; beyond, the oldest are dropped."""
    longest_retry: float = 10.0
    """Seconds between two attempts, at most."""
    reserved: int = 10_000
    """Job numbers that are reserved ahead: a crash skips them, and none is used twice."""
    history: float = 90 * 86400.0
    """Seconds that ended jobs are kept."""
    prune_interval: float = 3600.0
    """Seconds between two removals of old jobs."""
    families_per_user: int = FAMILIES_PER_USER
    """Families that are kept of one user; beyond, the user's oldest is forgotten."""


DEFAULT_LIMITS = Limits()


class WriteBehind:
    """A controller's store; only `close` and `flush` wait. A context manager."""

    def __init__(
        self,
        store: Store,
        *,
        limits: Limits = DEFAULT_LIMITS,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Load the store, and begin to write; StoreError: it cannot be read."""
        self._store, self._limits = store, limits
        self._clock, self._wall_clock = clock, wall_clock
        self.memory = store.load()
        self.families = self.memory.families
        self.families.most_per_user = limits.families_per_user
        self.totals = self.memory.totals
        self._serial = self.memory.serial
        # Job numbers up to here are not used again, even after a crash.
        self._written = self._serial
        self.failed_total = self.dropped_total = self.written_total = 0
        self.failing: str | None = None  # the error, while nothing can be written
        self._logged: set[str] = set()  # kinds of failures that are logged, until all is well
        self._changed = threading.Condition()
        # A key's change is in at most one of the first two; the batch may have an older one.
        self._soon, self._later = Changes(), Changes()
        self._in_store = {job.id for job in self.memory.running}
        self._hurry, self._closing_until = False, math.inf
        # Numbers of changes: the last, the last in a batch, and the last written.
        self._noted, self._taken_to, self._written_to = 1, 1, 0
        self._pruned = -math.inf
        self._epoch = wall_clock() - clock()
        self._reserved = self._serial + limits.reserved
        self._batch = Changes(serial=self._reserved, since=clock())
        self._attempt()
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def serial(self) -> int:
        """Return a new job number, never used before or after."""
        with self._changed:
            self._serial += 1
            if self._serial > self._written:
                # It is not reserved in the store; a number from the clock is new after a crash.
                self._serial = max(self._serial, int(self._wall_clock()))
            if self._reserved - self._serial < self._limits.reserved // 2:
                self._reserved = self._soon.serial = self._serial + self._limits.reserved
                self._note(self._soon)
            return self._serial

    def recall(self, family: Family) -> RecalledKnowledge | None:
        """Return the knowledge of a family, or of the nearest size."""
        return self.families.recall(family)

    def learn(self, family: Family, knowledge: Knowledge) -> None:
        """Replace the knowledge of a family."""
        forgotten = self.families.learn(family, knowledge)
        with self._changed:
            _newest(self._later.families, family, knowledge)
            if forgotten is not None:
                _newest(self._later.families, forgotten, None)
            self._note(self._later)

    def forget_family(self, family: Family) -> None:
        """Remove the knowledge of a family."""
        self.families.forget(family)
        with self._changed:
            _newest(self._later.families, family, None)
            self._note(self._later)

    def running(self, job: JobRecord) -> None:
        """Store a job that began, or its progress."""
        with self._changed:
            if job.id in self._in_store and job.id not in self._soon.jobs:
                _newest(self._later.jobs, job.id, job)
                self._note(self._later)
            else:
                self._in_store.add(job.id)
                self._put_soon(job.id, job)

    def ended(self, job: JobRecord) -> None:
        """Store a job that ended, and add it to the totals; call it once per job."""
        with self._changed:
            self._in_store.discard(job.id)
            self.totals = self.totals.plus(job)
            self._soon.totals = self.totals
            self._put_soon(job.id, job)

    def resumed(self, job: JobRecord) -> None:
        """Remove a reconnected job from the totals: it will end again."""
        with self._changed:
            self.totals = self.totals.minus(job)
            self._soon.totals = self.totals
            self._note(self._soon)

    def forget(self, job: str) -> None:
        """Remove a running job as if it had never begun."""
        with self._changed:
            self._in_store.discard(job)
            self._put_soon(job, None)

    async def find_ended(self, job: str) -> JobRecord | None:
        """Return the record of a job that ended; StoreError: the store does not answer."""
        with self._changed:
            unwritten = self._soon.jobs.get(job) or self._batch.jobs.get(job)
        if unwritten is not None and unwritten.state != "running":
            return unwritten
        return await asyncio.to_thread(self._store.ended, job)

    @property
    def waiting(self) -> int:
        """Changes that are not written yet."""
        return len(self._soon) + len(self._later) + len(self._batch)

    def waiting_jobs(self) -> set[str]:
        """Return the jobs with changes that are not written yet."""
        with self._changed:
            return {*self._soon.jobs, *self._later.jobs, *self._batch.jobs}

    @property
    def lag_seconds(self) -> float:
        """How long the oldest change has waited: seconds, while the store works."""
        with self._changed:
            oldest = min(self._soon.since, self._later.since, self._batch.since)
        return 0.0 if oldest == math.inf else self._clock() - oldest

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all changes made before this call are written; tell whether they are."""
        with self._changed:
            self._hurry, last = True, self._noted
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._written_to >= last, timeout)

    def close(self, timeout: float = 10.0) -> bool:
        """Write the remaining changes and close the store; tell whether all were written."""
        with self._changed:
            if not self._closing():
                self._soon.serial = self._serial  # unused reserved numbers are free again
                self._note(self._soon)
                self._closing_until = self._clock() + timeout
            self._changed.notify_all()
        self._thread.join(timeout + 1.0)
        if self.waiting:
            log.error("%s: %d changes are lost: %s", self._store.where, self.waiting, self.failing)
        if not self._thread.is_alive():
            self._store.close()
        return not self.waiting

    # Callers of the following methods hold the lock.

    def _put_soon(self, job: str, change: JobRecord | None) -> None:
        self._later.jobs.pop(job, None)
        _newest(self._soon.jobs, job, change)
        self._note(self._soon)

    def _note(self, changes: Changes) -> None:
        self._noted += 1
        if changes.since == math.inf:
            changes.since = self._clock()
            self._changed.notify_all()
        elif changes is self._soon and len(changes) == self._limits.rows:
            self._changed.notify_all()
        self._drop_beyond_most()

    def _drop_beyond_most(self) -> None:
        most = self._limits.most
        if len(self._soon) + len(self._later) <= most:
            return
        both = (self._soon, self._later)
        queues: list[dict[Any, Any]] = [c for each in both for c in (each.jobs, each.families)]
        while sum(map(len, queues)) > most:
            self.dropped_total += 1
            self._log_once("full", f"has more than {most} changes waiting; the oldest are dropped")
            longest = max(queues, key=len)
            del longest[next(iter(longest))]

    def _closing(self) -> bool:
        return self._closing_until < math.inf

    def _run(self) -> None:
        delay = 0.0
        while self._take(delay):
            if self._attempt():
                if self._clock() >= self._pruned + self._limits.prune_interval:
                    self.prune()
                delay = 0.0
            else:
                delay = min(max(2 * delay, self._limits.soon), self._limits.longest_retry)

    def _take(self, delay: float) -> bool:
        """Wait for the next batch, or `delay` after a failure; False: closed and all written."""
        with self._changed:
            if delay and self._closing():
                self._changed.wait(min(delay, self._limits.soon))
            elif delay:
                self._changed.wait_for(lambda: self._closing() or self._hurry, delay)
            else:
                self._await_batch()
            now = self._clock()
            if self._closing() and (not self.waiting or now >= self._closing_until):
                return False
            self._batch, self._soon = self._soon, Changes()
            if self._hurry or self._closing() or now >= self._later.since + self._limits.later:
                self._batch, self._later = self._batch.under(self._later), Changes()
                # If it fails it is put back, and the next batch contains it.
                self._taken_to = self._noted
            self._hurry = False
            return True

    def _await_batch(self) -> None:
        while not (self._closing() or self._hurry or len(self._soon) >= self._limits.rows):
            due = min(
                self._soon.since + self._limits.soon,
                self._later.since + self._limits.later,
                self._pruned + self._limits.prune_interval,
            )
            left = due - self._clock()
            if left <= 0:
                return
            self._changed.wait(left)

    def _attempt(self) -> bool:
        """Write the batch, or put it back if that fails; tell which."""
        try:
            refused = self._store.write(self._batch) if self._batch else []
        except Exception as error:  # any error: the controller goes on, and this is tried again
            self._failed(error)
            with self._changed:
                self._soon, self._batch = self._batch.under(self._soon), Changes()
                self._drop_beyond_most()
            return False
        for why in refused:
            self.dropped_total += 1
            self._log_once("row", f"refused a row, which is left out: {why}")
        with self._changed:
            if self.failing is not None:
                log.warning("%s can be written again", self._store.where)
                self.failing = None
                self._logged.clear()
            self.written_total += len(self._batch) - len(refused)
            self._written = self._batch.serial or self._written
            self._batch = Changes()
            self._written_to = self._taken_to
            self._changed.notify_all()
        return True

    def prune(self) -> None:
        """Remove jobs that ended too long ago."""
        self._pruned = self._clock()
        try:
            # If the wall clock jumped ahead, all history would seem old.
            now = min(self._wall_clock(), self._epoch + self._clock())
            self._store.prune(ended_before=now - self._limits.history)
        except Exception as error:  # as above; the next call tries again
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self.failed_total += 1
        self.failing = one_line(error)
        kind = error.kind if isinstance(error, StoreError) else type(error).__name__
        self._log_once(kind, f"cannot be written; trying again: {self.failing}")

    def _log_once(self, kind: str, message: str) -> None:
        if kind not in self._logged:
            self._logged.add(kind)
            log.error("%s %s", self._store.where, message)


def _newest(changes: dict[Key, Change], key: Key, change: Change) -> None:
    """Put a change last: the first ones have waited longest."""
    changes.pop(key, None)
    changes[key] = change
