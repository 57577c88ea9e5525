"""A fluid clock that drives the real Manager: slow, and what the native engine must equal."""

import heapq
import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from penstock.core.arbiter import Arbitrate
from penstock.core.manager import Manager
from penstock.learn.periods import Period
from penstock.model import (
    DIRECT_PATH,
    Action,
    Admit,
    Assign,
    Event,
    Hold,
    Job,
    JobEnded,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    Request,
    Site,
    WakeAt,
    Woke,
)
from penstock.policies.base import Sharing
from penstock.sim.checks import check
from penstock.sim.fluid import Resource, Transfer
from penstock.sim.knowledge import Knowledge
from penstock.sim.run import Run, Timeline, check_answer
from penstock.sim.workload import Workload

RELEASE, COMPUTE_END, WAKE = range(3)  # in this order at one instant, after the ends of transfers


def simulate(
    workload: Workload,
    sharing: Sharing,
    *,
    site: Site | None = None,
    knowledge: Knowledge | None = None,
    arbitrate: Arbitrate | None = None,
    timeline: bool = False,
) -> Run:
    """Run the workload as `penstock.sim.engine.simulate` does, some thousand times slower."""
    site = site or Site()
    check(workload, site)
    clock = _Clock(workload, sharing, site, knowledge or Knowledge(), arbitrate)
    clock.run()
    return Run(
        workload=workload,
        site=site,
        request=clock.request,
        end=clock.end,
        start=clock.start,
        phase_ends=clock.phase_ends,
        timeline=Timeline.of(clock.segments) if timeline else None,
    )


class _Clock:
    """Compute phases, transfers and the queue for nodes; it is also the policies' View."""

    def __init__(
        self,
        workload: Workload,
        sharing: Sharing,
        site: Site,
        knowledge: Knowledge,
        arbitrate: Arbitrate | None,
    ) -> None:
        n = len(workload)
        self.now = 0.0
        self.workload, self.site = workload, site
        self.known = list(workload.jobs(knowledge))
        self.serial = {job.id: job.serial for job in self.known}
        learn = (lambda _: Period()) if knowledge.kind == "learned" else None
        self.manager = Manager(sharing=sharing, view=self, learn=learn, arbitrate=arbitrate)
        self.request, self.end = np.empty(workload.iterations), np.empty(workload.iterations)
        self.start, self.phase_ends = np.empty(n), 0
        self.segments: list[tuple[int, int, float, float, float]] = []
        self.resources = [Resource(r, site.capacity, self.segments) for r in range(site.resources)]
        self.assigned = [workload.resources_of(j) for j in range(n)]
        self.iteration = [int(first) for first in workload.offsets[:-1]]
        self.scale, self.phase_io = [1.0] * n, [0.0] * n
        self.next_scale = [1.0] * n
        self.done, self.total_io = [0.0] * n, [0.0] * n
        self.began_direct: list[float | None] = [None] * n
        self.in_phase: list[tuple[int, ...]] = [()] * n
        self.free_nodes = site.nodes or math.inf
        self.queue: deque[int] = deque()
        self.behind: dict[int, list[int]] = {}
        self.open_jobs: dict[int, int] = {}
        for barrier in workload.barrier.tolist():
            self.open_jobs[barrier] = self.open_jobs.get(barrier, 0) + 1
        self.calendar = [(float(t), RELEASE, j) for j, t in enumerate(workload.release)]
        heapq.heapify(self.calendar)

    @property
    def jobs(self) -> dict[str, Job]:
        return self.manager.jobs

    def age(self, job: Job) -> float:
        return self.now - float(self.start[job.serial])

    def remaining(self, request: Request) -> float:
        return self._remaining(request.job.serial)

    def progress(self, job: Job) -> float:
        return self.done[job.serial] + self._in_phase(job.serial)

    def work_left(self, job: Job) -> float:
        return float(self.workload.work[job.serial]) - self.progress(job)

    def io_done(self, job: Job) -> float:
        return self.total_io[job.serial] + self._in_phase(job.serial)

    def _in_phase(self, j: int) -> float:
        if not self.in_phase[j] and self.began_direct[j] is None:
            return 0.0
        return (self.phase_io[j] - self._remaining(j)) / self.scale[j]

    def _remaining(self, j: int) -> float:
        began = self.began_direct[j]
        if began is not None:
            return began + self.phase_io[j] - self.now
        parts = [self.resources[r] for r in self.in_phase[j]]
        left = [r.remaining(r.transfers[j], self.now) for r in parts if j in r.transfers]
        return max(left, default=0.0)

    def run(self) -> None:
        while True:
            end, j, r = min(resource.next_end() for resource in self.resources)
            if end < math.inf and (not self.calendar or end <= self.calendar[0][0]):
                self.now = end
                self.end_transfer(j, self.resources[r])
            elif self.calendar:
                self.now, kind, j = heapq.heappop(self.calendar)
                [self.release, self.begin_io, self.wake][kind](j)
            else:
                return

    def tell(self, event: Event) -> None:
        actions = self.manager.handle(event)
        if isinstance(event, JobStarted | JobEnded | Woke):
            for answer in actions:
                check_answer(answer, self.serial, self.site)
        self.act(actions)

    def act(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case Admit() | Hold():
                    resource = self.resources[action.resource]
                    x = resource.transfers[self.serial[action.job]]
                    if isinstance(action, Hold):
                        resource.hold(x)
                    else:
                        x.weight, x.max_share = action.weight, action.max_share
                        resource.admit(x)
                case Assign():
                    j = self.serial[action.job]
                    self.assigned[j] = action.resources
                    self.next_scale[j] = self.workload.io_scale(j, len(action.resources))
                case WakeAt():
                    heapq.heappush(self.calendar, (max(action.time, self.now), WAKE, 0))

    def release(self, j: int) -> None:
        barrier = int(self.workload.after[j])
        if barrier >= 0 and self.open_jobs.get(barrier, 0):
            self.behind.setdefault(barrier, []).append(j)
        else:
            self.queue.append(j)
            self.start_queued()

    def start_queued(self) -> None:
        while self.queue and self.workload.nodes[self.queue[0]] <= self.free_nodes:
            j = self.queue.popleft()
            self.free_nodes -= int(self.workload.nodes[j])
            self.start[j] = self.now
            self.tell(JobStarted(time=self.now, job=self.known[j]))
            self.compute(j)

    def wake(self, _: int) -> None:
        self.tell(Woke(time=self.now))

    def compute(self, j: int) -> None:
        end = self.now + float(self.workload.compute[self.iteration[j]])
        heapq.heappush(self.calendar, (end, COMPUTE_END, j))

    def begin_io(self, j: int) -> None:
        if self.began_direct[j] is not None:
            self.began_direct[j] = None
            self.end_phase(j, DIRECT_PATH)
            return
        i = self.iteration[j]
        self.phase_ends += 1
        self.request[i] = self.now
        self.done[j] += float(self.workload.compute[i])
        self.scale[j] = self.next_scale[j]
        self.phase_io[j] = float(self.workload.io[i]) * self.scale[j]
        if self.phase_io[j] == 0.0:
            self.next_iteration(j)
            return
        self.in_phase[j] = self.assigned[j]
        if not self.in_phase[j]:
            self.began_direct[j] = self.now
            heapq.heappush(self.calendar, (self.now + self.phase_io[j], COMPUTE_END, j))
        for r in self.in_phase[j]:
            self.resources[r].advance(self.now)
            self.resources[r].transfers[j] = Transfer(j, self.phase_io[j])
        self.tell(
            PhaseBegan(
                time=self.now,
                job=self.known[j].id,
                resources=self.in_phase[j],
                io=self.phase_io[j],
            )
        )
        for r in self.in_phase[j]:
            self.resources[r].settle()

    def end_transfer(self, j: int, resource: Resource) -> None:
        resource.finish(resource.transfers[j], self.now)
        self.end_phase(j, resource.index)

    def end_phase(self, j: int, r: int) -> None:
        """The job's part of its phase on resource r is over, and perhaps the phase."""
        name, io = self.known[j].id, self.phase_io[j]
        self.tell(PhaseEnded(time=self.now, job=name, resource=r, io=io))
        if r != DIRECT_PATH:
            self.resources[r].settle()
        if not any(j in self.resources[r].transfers for r in self.in_phase[j]):
            self.in_phase[j] = ()
            self.done[j] += float(self.workload.io[self.iteration[j]])
            self.total_io[j] += float(self.workload.io[self.iteration[j]])
            self.next_iteration(j)

    def next_iteration(self, j: int) -> None:
        self.end[self.iteration[j]] = self.now
        self.phase_ends += 1
        self.iteration[j] += 1
        if self.iteration[j] < self.workload.offsets[j + 1]:
            self.compute(j)
            return
        self.free_nodes += int(self.workload.nodes[j])
        self.tell(JobEnded(time=self.now, job=self.known[j].id))
        barrier = int(self.workload.barrier[j])
        self.open_jobs[barrier] -= 1
        if barrier >= 0 and not self.open_jobs[barrier]:
            self.queue.extend(self.behind.pop(barrier, []))
        self.start_queued()
