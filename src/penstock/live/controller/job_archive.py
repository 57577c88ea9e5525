"""What the controller's store keeps of its jobs, and what a new job starts from."""

import logging
import time

from penstock.live.controller.job_table import JobEntry
from penstock.live.protocol.job_record import JobRecord
from penstock.live.store import Family, Knowledge, StoreError, WriteBehind

log = logging.getLogger("penstock.controller")


class JobArchive:
    """The controller's jobs in its store."""

    def __init__(self, store: WriteBehind) -> None:
        self.store = store
        self.unclaimed = {job.id: job for job in store.memory.running}
        """Jobs of an earlier controller that may still reconnect."""

    async def find(self, id: str) -> JobRecord | None:
        """Return the job with this id, if any; StoreError: the store does not answer."""
        if id in self.unclaimed:
            return self.unclaimed[id]
        return await self.store.find_ended(id)

    async def earlier(self, id: str) -> JobRecord | None:
        """Return the job with this id, or None; a store that does not answer knows none."""
        try:
            return await self.find(id)
        except StoreError as error:
            log.warning("cannot look up the owner of job %s: %s", id, error)
            return None

    def may_exist(self, id: str) -> bool:
        """Tell whether an earlier controller can have given this id to a job."""
        number = id.rpartition(".")[2]
        return number.isascii() and number.isdigit() and int(number) <= self.store.memory.serial

    def knowledge(self, job: JobEntry) -> Knowledge | None:
        """Return what is known of a job's family."""
        begin = job.begin
        recalled = self.store.recall(
            Family(user=begin.user, executable=begin.executable, nodes=begin.nodes)
        )
        return None if recalled is None else recalled.knowledge

    def resumed(self, job: JobEntry, earlier: JobRecord) -> None:
        """Continue an earlier job: keep its start time, and no longer count it as lost."""
        job.since -= max(job.began - earlier.began, 0.0)
        job.began = earlier.began
        if earlier.state != "running":
            self.store.resumed(earlier)

    def began(self, record: JobRecord) -> None:
        """Keep a job that began, or reconnected."""
        self.unclaimed.pop(record.id, None)
        self.store.running(record)

    def progressed(self, record: JobRecord) -> None:
        """Keep the progress of a running job."""
        self.store.running(record)

    def ended(self, record: JobRecord, *, remapped: bool) -> None:
        """Keep a job that ended, and what its phases teach about its family."""
        self.store.ended(record)
        if record.turn_waited_seconds is None or not record.phases:
            return
        family = Family(user=record.user, executable=record.executable, nodes=record.nodes)
        recalled = self.store.recall(family)
        curve = {} if recalled is None else dict(recalled.knowledge.curve or {})
        if not remapped and record.bandwidth:  # it had this number of I/O nodes all the time
            curve[len(record.io_nodes)] = record.bandwidth
        self.store.learn(
            family,
            Knowledge(
                w_iter=record.w_iter,
                observations=record.phases,
                phase_bytes=record.phase_bytes,
                bandwidth=record.bandwidth,
                curve=curve or None,
                updated=time.time(),
            ),
        )

    def reported_late(self, record: JobRecord, lost: JobRecord | None) -> None:
        """Keep a job whose end alone was reported; `lost`: it was counted as lost before."""
        self.unclaimed.pop(record.id, None)
        if lost is not None:
            self.store.resumed(lost)
        self.store.ended(record)

    def give_up(self) -> list[JobRecord]:
        """Count the jobs that did not reconnect as lost; return them."""
        now = time.time()
        lost = [record.lost(now) for record in self.unclaimed.values()]
        for record in lost:
            self.store.ended(record)
        self.unclaimed.clear()
        return lost
