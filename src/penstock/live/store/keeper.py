"""The store behind a service that waits for nothing: one thread writes, in batches.

The newest row of a key wins, so that what waits to be written is bounded by what there is. All that
waits is written in one transaction: a crash loses the last batch as a whole, and totals and jobs
agree. While the store fails, its service goes on and what is to be written waits in memory.
"""

import asyncio
import logging
import math
import threading
import time
from types import TracebackType
from typing import Self, TypeVar

from penstock.live.store.opening import StoreError, one_line
from penstock.live.store.records import EndedJob, Family, Knowledge, Recalled, RunningJob
from penstock.live.store.store import Changes, Store

EVERY = 0.2
"""Seconds that changes wait for others to be written with."""
ROWS = 2000
"""As many changes do not wait."""
MOST = 50_000
"""Changes that wait while the store fails; beyond, those that waited longest are dropped."""
SLOWEST_RETRY = 10.0
RESERVED = 10_000
"""Numbers of jobs that are taken out of the store ahead: a crash skips them, none comes twice."""
HISTORY = 90 * 86400.0
"""Seconds that jobs are told of after their end."""
PRUNE_EVERY = 3600.0
log = logging.getLogger("penstock.store")
Key = TypeVar("Key")
Change = TypeVar("Change")


class Keeper:
    """Remembers for a controller; no call but `close` and `flush` waits. A context manager."""

    def __init__(self, store: Store, *, every: float = EVERY, history: float = HISTORY) -> None:
        """Load all that is known, and begin to write; StoreError: it cannot be read."""
        self._store, self._every, self._history = store, every, history
        self.memory = store.load()
        self.families = self.memory.families
        self.totals = self.memory.totals
        self._serial = self.memory.serial
        self._reserved = self._serial + RESERVED
        store.write(Changes(serial=self._reserved))
        self.failed_total = self.dropped_total = self.written_total = 0
        self.failing: str | None = None  # why nothing can be written, while it cannot
        self._told: set[str] = set()  # kinds of failures that are in the log, since all was well
        self._changed = threading.Condition()
        self._waiting, self._batch = Changes(), Changes()
        self._waits_since: float | None = None  # the oldest change of each
        self._batch_since: float | None = None
        self._hurry, self._closing_until = False, math.inf
        self._pruned = -math.inf
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def serial(self) -> int:
        """Return a number that no job had before and none will have."""
        self._serial += 1
        if self._reserved - self._serial < RESERVED // 2:
            self._reserved = self._serial + RESERVED
            with self._changed:
                self._waiting.serial = self._reserved
                self._note()
        return self._serial

    def recall(self, family: Family) -> Recalled | None:
        """Return what is known of a family, or of the nearest size."""
        return self.families.recall(family)

    def learn(self, family: Family, knowledge: Knowledge) -> None:
        """Remember what is known of a family; what it leaves open stays as it was."""
        merged, forgotten = self.families.learn(family, knowledge)
        with self._changed:
            _newest(self._waiting.families, family, merged)
            if forgotten is not None:
                _newest(self._waiting.families, forgotten, None)
            self._note()

    def running(self, job: RunningJob) -> None:
        """Remember how far a running job is."""
        with self._changed:
            _newest(self._waiting.jobs, job.id, job)
            self._note()

    def ended(self, job: EndedJob) -> None:
        """Remember a job that ended; once a job: it is added to the totals."""
        with self._changed:
            self.totals = self.totals.plus(job)
            self._waiting.totals = self.totals
            _newest(self._waiting.jobs, job.id, job)
            self._note()

    def forget(self, job: str) -> None:
        """Forget a running job as if it had never begun."""
        with self._changed:
            _newest(self._waiting.jobs, job, None)
            self._note()

    async def find_ended(self, job: str) -> EndedJob | None:
        """Return what is told of a job that ended; StoreError: the store does not answer."""
        with self._changed:
            unwritten = self._waiting.jobs.get(job) or self._batch.jobs.get(job)
        if isinstance(unwritten, EndedJob):
            return unwritten
        return await asyncio.to_thread(self._store.ended, job)

    @property
    def waiting(self) -> int:
        """Changes that are not written yet."""
        return len(self._waiting) + len(self._batch)

    @property
    def lag_seconds(self) -> float:
        """How long the oldest change that is not written has waited."""
        with self._changed:
            since = [at for at in (self._waits_since, self._batch_since) if at is not None]
            return time.monotonic() - min(since) if since else 0.0

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all is written; say whether it is."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self.waiting, timeout)

    def close(self, timeout: float = 10.0) -> bool:
        """Write what is left, then close the store; say whether all was written."""
        with self._changed:
            if self._closing_until == math.inf:
                self._waiting.serial = self._serial  # numbers reserved and not given are free again
                self._note()
                self._closing_until = time.monotonic() + timeout
            self._changed.notify_all()
        self._thread.join(timeout + 1.0)
        if self.waiting:
            log.error("store: %d changes are lost: %s", self.waiting, self.failing or "no answer")
        if not self._thread.is_alive():
            self._store.close()
        return not self.waiting

    def _note(self) -> None:
        """Take note that something waits; the caller has the lock."""
        if self._waits_since is None:
            self._waits_since = time.monotonic()
            self._changed.notify_all()
        elif len(self._waiting) >= ROWS:
            self._changed.notify_all()
            self._drop_beyond_most()

    def _drop_beyond_most(self) -> None:
        waiting = self._waiting
        while len(waiting) > MOST:
            if len(waiting.jobs) >= len(waiting.families):
                del waiting.jobs[next(iter(waiting.jobs))]
            else:
                del waiting.families[next(iter(waiting.families))]
            self.dropped_total += 1
            self._tell("full", f"more than {MOST} changes wait; the oldest are dropped")

    def _run(self) -> None:
        delay = 0.0
        while self._take(delay):
            delay = 0.0 if self._attempt() else min(max(2 * delay, self._every), SLOWEST_RETRY)

    def _take(self, delay: float) -> bool:
        """Wait for a batch, `delay` after a failure; False: there is nothing more to do."""
        with self._changed:
            if delay and self._closing():
                self._changed.wait(min(delay, self._every))
            elif delay:
                self._changed.wait_for(self._closing, delay)
            else:
                self._await_batch()
            self._hurry = False
            if self._closing() and (not self._waiting or time.monotonic() >= self._closing_until):
                return False
            self._batch, self._waiting = self._waiting, Changes()
            self._batch_since, self._waits_since = self._waits_since, None
            return True

    def _await_batch(self) -> None:
        prune_in = self._pruned + PRUNE_EVERY - time.monotonic()
        self._changed.wait_for(lambda: self._closing() or bool(self._waiting), prune_in)
        if self._waits_since is not None:
            ready_in = self._waits_since + self._every - time.monotonic()
            self._changed.wait_for(
                lambda: self._closing() or self._hurry or len(self._waiting) >= ROWS, ready_in
            )

    def _closing(self) -> bool:
        return self._closing_until < math.inf

    def _attempt(self) -> bool:
        """Write the batch, or put it back; say which."""
        try:
            refused = self._store.write(self._batch) if self._batch else []
        except (
            Exception
        ) as error:  # whatever it is, the service goes on and the batch is tried again
            self._failed(error)
            with self._changed:
                self._waiting, self._batch = self._batch.under(self._waiting), Changes()
                self._waits_since, self._batch_since = self._batch_since, None
                self._drop_beyond_most()
            return False
        for why in refused:
            self.dropped_total += 1
            self._tell("row", f"a row is refused and left out: {why}")
        with self._changed:
            self.written_total += len(self._batch) - len(refused)
            self._batch, self._batch_since = Changes(), None
            self._changed.notify_all()
        if self.failing is not None:
            log.warning("%s can be written again", self._store.where)
            self.failing = None
            self._told.clear()
        self._prune()
        return True

    def _prune(self) -> None:
        if time.monotonic() < self._pruned + PRUNE_EVERY:
            return
        self._pruned = time.monotonic()
        try:
            self._store.prune(ended_before=time.time() - self._history)
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
