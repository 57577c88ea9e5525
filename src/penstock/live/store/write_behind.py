"""The store behind a service that waits for nothing: one thread writes, in batches.

The newest row of a key wins, so that what waits to be written is bounded by what there is. Jobs
that begin and end are written soon and in one transaction with the totals, so that these agree
after a crash. How far jobs are, and what is learned of them, may wait longer for more of its kind:
jobs count for themselves and say it again. While the store fails, its service goes on and all waits
in memory.
"""

import asyncio
import logging
import math
import threading
import time
from typing import Any, Self, TypeVar

from penstock.live.protocol.job_record import JobRecord
from penstock.live.store.database import StoreError, one_line
from penstock.live.store.rows import Family, Knowledge, Recalled
from penstock.live.store.store import Changes, Store

SOON = 0.2
"""Seconds that beginnings and ends wait for others to be written with."""
LATER = 5.0
"""Seconds that progress and knowledge wait."""
ROWS = 2000
"""As many beginnings and ends do not wait."""
MOST = 50_000
"""Changes that wait while the store fails; beyond, those that waited longest are dropped."""
SLOWEST_RETRY = 10.0
RESERVED = 10_000
"""Numbers of jobs that are written down ahead: a crash skips them, and none comes twice."""
HISTORY = 90 * 86400.0
"""Seconds that jobs are told of after their end."""
PRUNE_EVERY = 3600.0
log = logging.getLogger("penstock.store")
Key = TypeVar("Key")
Change = TypeVar("Change")


class WriteBehind:
    """Remembers for a controller; no call but `close` and `flush` waits. A context manager."""

    def __init__(self, store: Store, *, history: float = HISTORY) -> None:
        """Load all that is known, and begin to write; StoreError: it cannot be read."""
        self._store, self._history = store, history
        self.memory = store.load()
        self.families = self.memory.families
        self.totals = self.memory.totals
        self._serial = self.memory.serial
        self._written = self._serial  # numbers up to here are spoken for, also after a crash
        self.failed_total = self.dropped_total = self.written_total = 0
        self.failing: str | None = None  # why nothing can be written, while it cannot
        self._told: set[str] = set()  # kinds of failures that are in the log, since all was well
        self._changed = threading.Condition()
        # In none of them, in one, or in the batch and newer in another, is a key's change.
        self._soon, self._later, self._batch = Changes(), Changes(), Changes()
        self._soon_since = self._later_since = self._batch_since = math.inf  # the oldest of each
        self._begun = {job.id for job in self.memory.running}
        self._hurry, self._closing_until = False, math.inf
        # How many changes there were, and up to which of them all are in a batch, or are written.
        self._noted, self._taken_to, self._written_to = 1, 1, 0
        self._pruned = -math.inf
        self._epoch = time.time() - time.monotonic()
        self._reserved = self._serial + RESERVED
        self._batch, self._batch_since = Changes(serial=self._reserved), time.monotonic()
        self._attempt()
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def serial(self) -> int:
        """Return a number that no job had before and none will have."""
        with self._changed:
            self._serial += 1
            if self._serial > self._written:
                # Nobody would know of it after a crash; the clock's next number is new then, too.
                self._serial = max(self._serial, int(time.time()))
            if self._reserved - self._serial < RESERVED // 2:
                self._reserved = self._soon.serial = self._serial + RESERVED
                self._note_soon()
            return self._serial

    def recall(self, family: Family) -> Recalled | None:
        """Return what is known of a family, or of the nearest size."""
        return self.families.recall(family)

    def learn(self, family: Family, knowledge: Knowledge) -> None:
        """Remember what is known of a family; what it leaves open stays as it was."""
        merged, forgotten = self.families.learn(family, knowledge)
        with self._changed:
            _newest(self._later.families, family, merged)
            if forgotten is not None:
                _newest(self._later.families, forgotten, None)
            self._note_later()

    def running(self, job: JobRecord) -> None:
        """Remember a job that began, or how far it is."""
        with self._changed:
            if job.id in self._begun and job.id not in self._soon.jobs:
                _newest(self._later.jobs, job.id, job)
                self._note_later()
            else:
                self._begun.add(job.id)
                self._put_soon(job.id, job)

    def ended(self, job: JobRecord) -> None:
        """Remember a job that ended; once a job: it is added to the totals."""
        with self._changed:
            self._begun.discard(job.id)
            self.totals = self.totals.plus(job)
            self._soon.totals = self.totals
            self._put_soon(job.id, job)

    def resumed(self, job: JobRecord) -> None:
        """Take a job that came back out of the totals: it ends another time."""
        with self._changed:
            self.totals = self.totals.minus(job)
            self._soon.totals = self.totals
            self._note_soon()

    def forget(self, job: str) -> None:
        """Forget a running job as if it had never begun."""
        with self._changed:
            self._begun.discard(job)
            self._put_soon(job, None)

    async def find_ended(self, job: str) -> JobRecord | None:
        """Return what is told of a job that ended; StoreError: the store does not answer."""
        with self._changed:
            unwritten = self._soon.jobs.get(job) or self._batch.jobs.get(job)
        if unwritten is not None and unwritten.state != "running":
            return unwritten
        return await asyncio.to_thread(self._store.ended, job)

    @property
    def waiting(self) -> int:
        """Changes that are not written yet."""
        return len(self._soon) + len(self._later) + len(self._batch)

    @property
    def lag_seconds(self) -> float:
        """How long the oldest change that is not written has waited: while all is well, seconds."""
        with self._changed:
            oldest = min(self._soon_since, self._later_since, self._batch_since)
        return 0.0 if oldest == math.inf else time.monotonic() - oldest

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all is written that there was at the call; say whether it is."""
        with self._changed:
            self._hurry, all_of_now = True, self._noted
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._written_to >= all_of_now, timeout)

    def close(self, timeout: float = 10.0) -> bool:
        """Write what is left, then close the store; say whether all was written."""
        with self._changed:
            if not self._closing():
                self._soon.serial = self._serial  # numbers reserved and not given are free again
                self._note_soon()
                self._closing_until = time.monotonic() + timeout
            self._changed.notify_all()
        self._thread.join(timeout + 1.0)
        if self.waiting:
            log.error("%s: %d changes are lost: %s", self._store.where, self.waiting, self.failing)
        if not self._thread.is_alive():
            self._store.close()
        return not self.waiting

    # The caller of these has the lock.

    def _put_soon(self, job: str, change: JobRecord | None) -> None:
        self._later.jobs.pop(job, None)
        _newest(self._soon.jobs, job, change)
        self._note_soon()

    def _note_soon(self) -> None:
        self._noted += 1
        if self._soon_since == math.inf:
            self._soon_since = time.monotonic()
            self._changed.notify_all()
        elif len(self._soon) == ROWS:
            self._changed.notify_all()
        self._drop_beyond_most()

    def _note_later(self) -> None:
        self._noted += 1
        if self._later_since == math.inf:
            self._later_since = time.monotonic()
            self._changed.notify_all()
        self._drop_beyond_most()

    def _drop_beyond_most(self) -> None:
        if len(self._soon) + len(self._later) <= MOST:
            return
        both = (self._soon, self._later)
        kinds: list[dict[Any, Any]] = [*(of.jobs for of in both), *(of.families for of in both)]
        while sum(map(len, kinds)) > MOST:
            self.dropped_total += 1
            self._tell("full", f"has more than {MOST} changes waiting; the oldest are dropped")
            longest = max(kinds, key=len)
            del longest[next(iter(longest))]

    def _closing(self) -> bool:
        return self._closing_until < math.inf

    def _run(self) -> None:
        delay = 0.0
        while self._take(delay):
            if self._attempt():
                self._prune()
                delay = 0.0
            else:
                delay = min(max(2 * delay, SOON), SLOWEST_RETRY)

    def _take(self, delay: float) -> bool:
        """Wait for a batch, `delay` after a failure; False: there is nothing more to do."""
        with self._changed:
            if delay and self._closing():
                self._changed.wait(min(delay, SOON))
            elif delay:
                self._changed.wait_for(lambda: self._closing() or self._hurry, delay)
            else:
                self._await_batch()
            now = time.monotonic()
            if self._closing() and (not self.waiting or now >= self._closing_until):
                return False
            self._batch, self._soon = self._soon, Changes()
            self._batch_since, self._soon_since = self._soon_since, math.inf
            if self._hurry or self._closing() or now >= self._later_since + LATER:
                self._batch, self._later = self._batch.under(self._later), Changes()
                self._batch_since = min(self._batch_since, self._later_since)
                self._later_since = math.inf
                # Stays so if it fails: it is put back to what the next batch has anyway.
                self._taken_to = self._noted
            self._hurry = False
            return True

    def _await_batch(self) -> None:
        while not (self._closing() or self._hurry or len(self._soon) >= ROWS):
            due = min(
                self._soon_since + SOON, self._later_since + LATER, self._pruned + PRUNE_EVERY
            )
            left = due - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)

    def _attempt(self) -> bool:
        """Write the batch, or put it back; say which."""
        try:
            refused = self._store.write(self._batch) if self._batch else []
        except Exception as error:  # whatever it is: the service goes on, and this is tried again
            self._failed(error)
            with self._changed:
                self._soon, self._batch = self._batch.under(self._soon), Changes()
                self._soon_since, self._batch_since = self._batch_since, math.inf
                self._drop_beyond_most()
            return False
        for why in refused:
            self.dropped_total += 1
            self._tell("row", f"a row is refused and left out: {why}")
        with self._changed:
            if self.failing is not None:
                log.warning("%s can be written again", self._store.where)
                self.failing = None
                self._told.clear()
            self.written_total += len(self._batch) - len(refused)
            self._written = self._batch.serial or self._written
            self._batch, self._batch_since = Changes(), math.inf
            self._written_to = self._taken_to
            self._changed.notify_all()
        return True

    def _prune(self) -> None:
        if time.monotonic() < self._pruned + PRUNE_EVERY:
            return
        self._pruned = time.monotonic()
        try:
            # To a wall clock that jumped ahead all of history would be old.
            now = min(time.time(), self._epoch + time.monotonic())
            self._store.prune(ended_before=now - self._history)
        except Exception as error:  # as above; the next hour's does it
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self.failed_total += 1
        self.failing = one_line(error)
        kind = error.kind if isinstance(error, StoreError) else type(error).__name__
        self._tell(kind, f"cannot be written, and is tried again: {self.failing}")

    def _tell(self, kind: str, what: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            log.error("%s %s", self._store.where, what)


def _newest(changes: dict[Key, Change], key: Key, change: Change) -> None:
    """Put a change last: the first are those that waited longest."""
    changes.pop(key, None)
    changes[key] = change
