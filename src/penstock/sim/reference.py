"""A fluid clock that drives the real Manager: slow, and what the native engine must equal."""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable

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
from penstock.policies.base import Sharing, without_trace
from penstock.sim.checks import check
from penstock.sim.fluid import Resource, Transfer
from penstock.sim.knowledge import Knowledge
from penstock.sim.run import Run, Timeline, check_answer
from penstock.sim.workload import Floats, Workload

RELEASE, COMPUTE_END, WAKE = range(3)  # in this order at one instant, after the ends of transfers


def simulate(
    workload: Workload,
    sharing: Sharing,
    *,
    site: Site | None = None,
    knowledge: Knowledge | None = None,
    arbitrate: Arbitrate | None = None,
    marks: Iterable[float] = (),
    timeline: bool = False,
) -> Run:
    """Run the workload as `penstock.sim.engine.simulate` does, some thousand times slower."""
    site = site or Site()
    check(workload, site)
    clock = Clock(workload, without_trace(sharing), site, knowledge or Knowledge(), arbitrate)
    return clock.record(marks, timeline=timeline)


class Clock:
    """Compute phases, transfers and the queue for nodes; it is also the policies' View.

    `learn` makes the estimators of `learned` knowledge; `fair_users`: see Manager.
    """

    def __init__(
        self,
        workload: Workload,
        sharing: Sharing,
        site: Site,
        knowledge: Knowledge,
        arbitrate: Arbitrate | None,
        *,
        learn: Callable[[], Period] = Period,
        fair_users: bool = False,
    ) -> None:
        n = len(workload)
        self.now = 0.0
        self.workload, self.site = workload, site
        self.known = list(workload.jobs(knowledge))
        self.serial = {job.id: job.serial for job in self.known}
        self.manager = Manager(
            sharing=sharing,
            view=self,
            learn=(lambda _: learn()) if knowledge.kind == "learned" else None,
            arbitrate=arbitrate,
            fair_users=fair_users,
        )
        self.request, self.end = np.empty(workload.iterations), np.empty(workload.iterations)
        self.start, self.phase_ends = np.empty(n), 0
        self.segments: list[tuple[int, int, float, float, float]] = []
        self.resources = [Resource(r, site.capacity, self.segments) for r in range(site.resources)]
        self.assigned = [workload.resources_of(j) for j in range(n)]
        self.iteration = [int(first) for first in workload.offsets[:-1]]
        self.scale, self.phase_io = [1.0] * n, [0.0] * n
        self.next_scale = [1.0] * n
        self.part: list[float] = workload.parts(site).tolist()
        self.next_part = list(self.part)
        self.work_done, self.total_io = [0.0] * n, [0.0] * n
        self.computing_since: list[float | None] = [None] * n
        self.factor = workload.estimate_factors(knowledge)
        self.learned = knowledge.kind == "learned"
        self.phases_io, self.phases = [0.0] * n, [0] * n
        self.marks: list[float] = []
        self.moved: dict[float, Floats] = {}
        self.unfinished, self.undecided = n, False
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
        self.handlers: list[Callable[[int], None]] = [self.release, self.begin_io, self.wake]

    def record(self, marks: Iterable[float], *, timeline: bool) -> Run:
        """Run to the end, and return the record."""
        self.marks = sorted({*marks, *self.workload.steady_part})
        self.run()
        return Run(
            workload=self.workload,
            site=self.site,
            request=self.request,
            end=self.end,
            start=self.start,
            phase_ends=self.phase_ends,
            timeline=Timeline.of(self.segments) if timeline else None,
            moved=self.moved,
        )

    @property
    def jobs(self) -> dict[str, Job]:
        """The jobs that run now."""
        return self.manager.jobs

    def age(self, job: Job) -> float:
        """Seconds since the job started."""
        return self.now - float(self.start[job.serial])

    def expected(self, request: Request) -> float | None:
        """The length of the phase, as far as the knowledge goes."""
        return self._expected(request.job.serial)

    def done(self, request: Request) -> float:
        """What the phase has done on its slowest resource."""
        return self._phase_done(request.job.serial)

    def remaining(self, request: Request) -> float:
        """What is expected less what is done."""
        expected = self.expected(request)
        return (math.inf if expected is None else expected) - self.done(request)

    def progress(self, job: Job) -> float:
        """Compute and I/O until now."""
        since = self.computing_since[job.serial]
        now = self._in_phase(job.serial) if since is None else self.now - since
        return self.work_done[job.serial] + now

    def work_left(self, job: Job) -> float:
        """The work that is not done yet, as far as the knowledge goes."""
        if self.learned:
            return math.nan
        work = float(self.workload.work[job.serial]) * float(self.factor[job.serial])
        return work - self.progress(job)

    def io_done(self, job: Job) -> float:
        """The I/O until now."""
        return self.total_io[job.serial] + self._in_phase(job.serial)

    def _expected(self, j: int) -> float | None:
        if self.learned:
            return self.phases_io[j] / self.phases[j] if self.phases[j] else None
        return self.phase_io[j] / self.usable(j) * float(self.factor[j])

    def _in_phase(self, j: int) -> float:
        return self._phase_done(j) / self.scale[j]

    def _phase_done(self, j: int) -> float:
        began = self.began_direct[j]
        if began is not None:
            return self.now - began
        if not self.in_phase[j]:
            return 0.0
        parts = [self.resources[r] for r in self.in_phase[j]]
        left = [r.remaining(r.transfers[j], self.now) for r in parts if j in r.transfers]
        return max(0.0, self.phase_io[j] - max(left, default=0.0)) / self.usable(j)

    def usable(self, j: int) -> float:
        """Return the part of each of its resources that job j can use when alone."""
        return self.known[j].max_share * self.part[j]

    def run(self) -> None:
        """Let time pass until nothing is left to happen."""
        while True:
            end, j, r = min(resource.next_end() for resource in self.resources)
            transfer = end < math.inf and (not self.calendar or end <= self.calendar[0][0])
            later = end if transfer else self.calendar[0][0] if self.calendar else math.inf
            if self.undecided and later > self.now:
                self.decide()
            elif self.marks and self.marks[0] < later:
                self.mark(self.marks.pop(0))
            elif transfer:
                self.now = end
                self.end_transfer(j, self.resources[r])
            elif self.calendar:
                self.now, kind, j = heapq.heappop(self.calendar)
                self.handlers[kind](j)
            else:
                return

    def mark(self, time: float) -> None:
        """Note what each job has done of the phase that it is in."""
        self.now = max(self.now, time)
        self.moved[time] = np.array([self._in_phase(j) for j in range(len(self.workload))])

    def tell(self, event: Event) -> None:
        """Let the Manager hear of an event; it decides before time goes on."""
        self.undecided = True
        self.arrange(self.manager.hear(event))

    def arrange(self, actions: Iterable[Action]) -> None:
        """Do what is no question of turns: new resources for a job's next phases, and wakes."""
        for action in actions:
            check_answer(action, self.serial, self.site)
            match action:
                case Assign():
                    j = self.serial[action.job]
                    self.assigned[j] = action.resources
                    count = len(action.resources)
                    self.next_scale[j] = self.workload.io_scale(j, count)
                    self.next_part[j] = self.workload.part(j, count, self.site)
                case WakeAt():
                    heapq.heappush(self.calendar, (max(action.time, self.now), WAKE, 0))

    def decide(self) -> None:
        """Let the Manager decide on the events of this instant."""
        self.undecided = False
        self.act(self.manager.decide())

    def act(self, actions: Iterable[Action]) -> None:
        """Hold and admit transfers: those that are held leave before others come."""
        turns = [action for action in actions if isinstance(action, Admit | Hold)]
        resources = {action.resource: self.resources[action.resource] for action in turns}
        for resource in resources.values():
            resource.advance(self.now)
        admits = [action for action in turns if isinstance(action, Admit)]
        changed = [action for action in admits if self._transfer(action).state != "waiting"]
        leaving: list[Admit | Hold] = [action for action in turns if isinstance(action, Hold)]
        for action in (*leaving, *changed):
            resources[action.resource].hold(self._transfer(action))
        for admit in [*(action for action in admits if action not in changed), *changed]:
            x = self._transfer(admit)
            x.weight = admit.weight
            x.max_share = admit.max_share * self.part[x.job]
            resources[admit.resource].admit(x)
        for resource in resources.values():
            resource.settle()

    def _transfer(self, action: Admit | Hold) -> Transfer:
        return self.resources[action.resource].transfers[self.serial[action.job]]

    def release(self, j: int) -> None:
        """The job comes, and waits for compute nodes."""
        barrier = int(self.workload.after[j])
        if barrier >= 0 and self.open_jobs.get(barrier, 0):
            self.behind.setdefault(barrier, []).append(j)
        else:
            self.queue.append(j)
            self.start_queued()

    def start_queued(self) -> None:
        """Start the jobs at the head of the queue that compute nodes are free for."""
        while self.queue and self.workload.nodes[self.queue[0]] <= self.free_nodes:
            j = self.queue.popleft()
            self.free_nodes -= int(self.workload.nodes[j])
            self.start[j] = self.now
            self.tell(JobStarted(time=self.now, job=self.known[j]))
            self.compute(j)

    def wake(self, _: int) -> None:
        """The time of a WakeAt has come."""
        if self.unfinished:
            self.tell(Woke(time=self.now))

    def compute(self, j: int) -> None:
        """The job computes until its next I/O phase."""
        self.computing_since[j] = self.now
        end = self.now + float(self.workload.compute[self.iteration[j]])
        heapq.heappush(self.calendar, (end, COMPUTE_END, j))

    def begin_io(self, j: int) -> None:
        """A compute phase, or a phase without resources, has ended."""
        if self.began_direct[j] is not None:
            self.began_direct[j] = None
            self.end_phase(j, DIRECT_PATH)
            return
        i = self.iteration[j]
        self.phase_ends += 1
        self.request[i] = self.now
        self.computing_since[j] = None
        self.work_done[j] += float(self.workload.compute[i])
        self.scale[j], self.part[j] = self.next_scale[j], self.next_part[j]
        self.phase_io[j] = float(self.workload.io[i]) * self.scale[j] * self.part[j]
        if self.phase_io[j] == 0.0:
            self.next_iteration(j)
            return
        self.in_phase[j] = self.assigned[j]
        if not self.in_phase[j]:
            self.began_direct[j] = self.now
            end = self.now + self.phase_io[j] / self.usable(j)
            heapq.heappush(self.calendar, (end, COMPUTE_END, j))
        for r in self.in_phase[j]:
            self.resources[r].transfers[j] = Transfer(j, self.phase_io[j])
        self.tell_began(j)

    def tell_began(self, j: int) -> None:
        """Let the Manager hear that a phase of the job begins."""
        self.tell(
            PhaseBegan(
                time=self.now,
                job=self.known[j].id,
                resources=self.in_phase[j],
                io=self._expected(j),
            )
        )

    def end_transfer(self, j: int, resource: Resource) -> None:
        """The job's transfer on a resource has ended."""
        resource.finish(resource.transfers[j], self.now)
        resource.settle()
        self.end_phase(j, resource.index)

    def end_phase(self, j: int, r: int) -> None:
        """The job's part of its phase on resource r is over, and perhaps the phase."""
        io = self.phase_io[j] / self.usable(j)
        last = not any(j in self.resources[r].transfers for r in self.in_phase[j])
        if last:
            self.in_phase[j] = ()
            isolated = float(self.workload.io[self.iteration[j]]) / self.known[j].max_share
            self.work_done[j] += isolated
            self.total_io[j] += isolated
            self.phases_io[j] += io
            self.phases[j] += 1
        self.tell_ended(j, r, io)
        if last:
            self.next_iteration(j)

    def tell_ended(self, j: int, r: int, io: float) -> None:
        """Let the Manager hear that the job's part of its phase on resource r is over."""
        self.tell(PhaseEnded(time=self.now, job=self.known[j].id, resource=r, io=io))

    def next_iteration(self, j: int) -> None:
        """An iteration is over, and perhaps the job."""
        self.end[self.iteration[j]] = self.now
        self.phase_ends += 1
        self.iteration[j] += 1
        if self.iteration[j] < self.workload.offsets[j + 1]:
            self.compute(j)
            return
        self.end_job(j)

    def end_job(self, j: int) -> None:
        """The job leaves its nodes to others."""
        self.unfinished -= 1
        self.free_nodes += int(self.workload.nodes[j])
        self.tell(JobEnded(time=self.now, job=self.known[j].id))
        barrier = int(self.workload.barrier[j])
        self.open_jobs[barrier] -= 1
        if barrier >= 0 and not self.open_jobs[barrier]:
            self.queue.extend(self.behind.pop(barrier, []))
        self.start_queued()
