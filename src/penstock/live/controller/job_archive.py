"""What the controller's jobs leave in its store, and what it begins a job with."""

import logging
import time

from penstock.live.controller.job_table import Job
from penstock.live.controller.turns import Standing
from penstock.live.protocol.counters import direct_bytes, fail_opens, forwarded_bytes
from penstock.live.protocol.messages import BeginJob
from penstock.live.protocol.users import uid_of
from penstock.live.store import EndedJob, Family, Keeper, Knowledge, RunningJob, StoreError

log = logging.getLogger("penstock.controller")


class Archive:
    """Jobs as the store has them."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.unclaimed = {job.id: job for job in keeper.memory.running}
        """Jobs of the controller before, which may come back."""

    async def find(self, id: str) -> RunningJob | EndedJob | None:
        """Return the job that had this id, if any; StoreError: the store does not answer."""
        if id in self.unclaimed:
            return self.unclaimed[id]
        return await self.keeper.find_ended(id)

    async def earlier(self, id: str) -> RunningJob | EndedJob | None:
        """Return the job that had this id; None: nobody knows of one."""
        try:
            return await self.find(id)
        except StoreError as error:
            log.warning("whose job %s was cannot be told: %s", id, error)
            return None

    def may_be(self, id: str) -> bool:
        """Say whether an earlier controller can have given this id away."""
        number = id.rpartition(".")[2]
        return number.isascii() and number.isdigit() and int(number) <= self.keeper.memory.serial

    def knowledge(self, job: Job) -> Knowledge | None:
        """Return what is known of a job's family."""
        found = self.keeper.recall(_family(job))
        return None if found is None else found.knowledge

    def resumed(self, job: Job, earlier: RunningJob | EndedJob) -> None:
        """Go on with a job that comes back: what it did before is told once, not twice."""
        job.since -= max(job.began - earlier.began, 0.0)
        job.began = earlier.began
        if isinstance(earlier, EndedJob):
            self.keeper.resumed(earlier)

    def began(self, job: Job) -> None:
        """Keep a job that runs, or comes back."""
        self.unclaimed.pop(job.id, None)
        self.progressed(job, None)

    def progressed(self, job: Job, standing: Standing | None) -> None:
        """Keep how far a job is."""
        self.keeper.running(_running(job, standing))

    def ended(self, job: Job, standing: Standing | None, w_iter: float | None) -> None:
        """Keep a job that ended, and what its phases teach of its family."""
        ended, phases = job.ended or time.time(), 0 if standing is None else standing.phases
        self.keeper.ended(_over(_running(job, standing), ended, job.state, job.status))
        if standing is not None and phases:
            had = self.knowledge(job)
            curve = dict(had.curve or {}) if had is not None else {}
            if not job.maps and standing.bandwidth:  # all of it with as many I/O nodes
                curve[len(job.io_nodes)] = standing.bandwidth
            self.keeper.learn(
                _family(job),
                Knowledge(
                    w_iter=w_iter,
                    observations=phases,
                    phase_bytes=standing.bytes / phases,
                    bandwidth=standing.bandwidth or None,
                    curve=curve or None,
                    updated=time.time(),
                ),
            )

    def ended_unheard(self, job: Job, earlier: EndedJob | None) -> None:
        """Keep a job of which only the end was heard; `earlier`: it was taken for lost."""
        self.unclaimed.pop(job.id, None)
        if earlier is not None:
            self.keeper.resumed(earlier)
        self.keeper.ended(_over(_running(job, None), job.ended or 0.0, job.state, job.status))

    def give_up(self) -> list[Job]:
        """Let go of the jobs that did not come back; return them."""
        now, lost = time.time(), list(self.unclaimed.values())
        for job in lost:
            self.keeper.ended(_over(job, now, "lost"))
        self.unclaimed.clear()
        return [_lost(job, now) for job in lost]


def _family(job: Job) -> Family:
    begin = job.begin
    return Family(user=begin.user, executable=begin.executable, nodes=begin.nodes)


def _running(job: Job, standing: Standing | None) -> RunningJob:
    begin = job.begin
    return RunningJob(
        id=job.id,
        serial=job.serial,
        user=begin.user,
        uid=uid_of(begin.user),
        name=begin.name,
        began=job.began,
        pid=begin.pid,
        command=tuple(begin.command),
        executable=begin.executable,
        nodes=begin.nodes,
        processes=begin.processes,
        io_nodes=begin.io_nodes,
        counters=dict(job.counters),
        # Whose phases nobody heard of has counted them itself.
        phases=job.counters.get("phases", 0) if standing is None else standing.phases,
        phase_seconds=0.0 if standing is None else standing.transferred,
    )


def _lost(job: RunningJob, now: float) -> Job:
    """Return a job as it is listed, of what the store has of it."""
    begin = BeginJob(
        name=job.name,
        pid=job.pid,
        command=list(job.command),
        user=job.user,
        io_nodes=job.io_nodes,
        executable=job.executable,
        nodes=job.nodes,
        processes=job.processes,
    )
    return Job(
        id=job.id,
        serial=job.serial,
        begin=begin,
        began=job.began,
        lasted=max(now - job.began, 0.0),
        ended=now,
        counters=job.counters,
        state="lost",
    )


def _over(job: RunningJob, ended: float, state: str, status: int | None = None) -> EndedJob:
    return EndedJob(
        id=job.id,
        serial=job.serial,
        user=job.user,
        uid=job.uid,
        name=job.name,
        began=job.began,
        ended=ended,
        state=state,
        status=status,
        command=job.command,
        executable=job.executable,
        nodes=job.nodes,
        forwarded_bytes=forwarded_bytes(job.counters),
        direct_bytes=direct_bytes(job.counters),
        waited_seconds=job.counters.get("waited", 0) / 1e9,
        fail_opens=fail_opens(job.counters),
        phases=job.phases,
        phase_seconds=job.phase_seconds / job.phases if job.phases else 0.0,
    )
