"""A simulation with what only a live site has: bounded waits, fair users, phases that are detected.

The reference simulator drives the real Manager; this adds the rest of what a controller and its
agents do in mode enforce, with their own code: `core.wait` ends waits, `learn.phases` learns how
long a job must be idle for its phase to be over. What is left of the difference between a
simulated and an enforced day is physics, and what no simulation knows: see
docs/simulate/as-live.md.
"""

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.config.sections import LiveSection
from penstock.core.arbiter import Arbitrate
from penstock.core.wait import Wait, heaviest, release_overdue
from penstock.learn.periods import Period
from penstock.learn.phases import LONGEST_GAP, SHORTEST_GAP, Gap
from penstock.model import DIRECT_PATH, Action, Admit, Hold, PhaseEnded, ResourceId, Site
from penstock.policies.base import Sharing, without_trace
from penstock.sim.checks import check
from penstock.sim.knowledge import Knowledge
from penstock.sim.reference import WAKE, Clock
from penstock.sim.run import Run
from penstock.sim.workload import Workload

DETECT, OVERDUE = WAKE + 1, WAKE + 2  # after all that jobs do at one instant


@dataclass(frozen=True, slots=True, kw_only=True)
class AsLive:
    """What a live site adds to its policy; the defaults add nothing.

    `max_wait`: the longest time that a phase waits for its turn. `fair_users`: turns alternate
    between users. `shortest_gap` and `longest_gap`: the limits between which the agents learn how
    long a job must be idle for its phase to be over; until then it keeps its turn, though it
    computes. Both 0: the end of a phase is seen at once.
    """

    max_wait: float = math.inf
    fair_users: bool = False
    shortest_gap: float = 0.0
    longest_gap: float = 0.0

    @classmethod
    def of(cls, live: LiveSection) -> "AsLive":
        """Return what a site with this configuration has."""
        _, max_wait = live.seconds()
        return cls(
            max_wait=max_wait,
            fair_users=live.fair_users,
            shortest_gap=SHORTEST_GAP,
            longest_gap=LONGEST_GAP,
        )

    def simulate(
        self,
        workload: Workload,
        sharing: Sharing,
        *,
        site: Site | None = None,
        knowledge: Knowledge | None = None,
        arbitrate: Arbitrate | None = None,
        marks: Iterable[float] = (),
        timeline: bool = False,
    ) -> Run:
        """Run the workload as `penstock.sim.reference.simulate` does, and as slowly."""
        site = site or Site()
        check(workload, site)
        clock = _LiveClock(
            self,
            workload,
            without_trace(sharing),
            site=site,
            knowledge=knowledge or Knowledge(),
            arbitrate=arbitrate,
        )
        run = clock.record(marks, timeline=timeline)
        return replace(run, released=clock.released)


class _LiveClock(Clock):
    """The fluid clock, with the controller's and the agents' part in the turns of its jobs."""

    def __init__(
        self,
        rules: AsLive,
        workload: Workload,
        sharing: Sharing,
        *,
        site: Site,
        knowledge: Knowledge,
        arbitrate: Arbitrate | None,
    ) -> None:
        super().__init__(
            workload,
            sharing,
            site,
            knowledge,
            arbitrate,
            learn=Period.live,
            fair_users=rules.fair_users,
        )
        n = len(workload)
        self.max_wait = rules.max_wait
        self.released = 0
        self.waits: list[dict[ResourceId, Wait]] = [{} for _ in range(n)]
        self.gaps = (
            [Gap(rules.shortest_gap, rules.longest_gap) for _ in range(n)]
            if rules.longest_gap > 0
            else None
        )
        self.ended_io: list[dict[ResourceId, float]] = [{} for _ in range(n)]
        """The parts of a phase that have ended, and the Manager has not heard of."""
        self.idle_since: list[float | None] = [None] * n
        self.detected_at = [math.inf] * n
        self.handlers += [self.detect, self.end_waits]

    # Waits.

    def tell_began(self, j: int) -> None:
        """The job asks for a turn, unless it still has that of its phase before."""
        idle_since = self.idle_since[j]
        if self.gaps is not None and idle_since is not None:
            self.gaps[j].learn(self.now - idle_since)
        if self.detected_at[j] < math.inf:
            if self.ended_io[j].keys() == set(self.in_phase[j] or (DIRECT_PATH,)):
                self.go_on(j)
                return
            self.report_end(j)
        self.waits[j] = {r: Wait(began=self.now, since=self.now) for r in self.in_phase[j]}
        super().tell_began(j)
        self.watch(j)

    def go_on(self, j: int) -> None:
        """What seemed to be the end of a phase was a pause inside it."""
        self.detected_at[j] = math.inf
        for r, wait in self.waits[j].items():
            if not wait.is_waiting:
                self.transfer(j, r, wait.weight)
        self.watch(j)

    def watch(self, j: int) -> None:
        """Look at the job's waits when the first of them is too long."""
        due = [wait.began + self.max_wait for wait in self.waits[j].values() if wait.is_waiting]
        if due and min(due) < math.inf:
            heapq.heappush(self.calendar, (max(min(due), self.now), OVERDUE, j))

    def end_waits(self, j: int) -> None:
        """Let the job's phase transfer without a turn, if it has waited for too long."""
        if self.undecided:
            self.decide()
        waits = self.waits[j].items()
        overdue = list(release_overdue(waits, self.now, self.max_wait, self.heaviest_on))
        self.released += bool(overdue)
        for r, wait in overdue:
            self.transfer(j, r, wait.weight)

    def heaviest_on(self, r: ResourceId) -> float:
        """Return the largest weight of the phases that transfer on a resource."""
        return heaviest(waits[r] for waits in self.waits if r in waits)

    def act(self, actions: Iterable[Action]) -> None:
        """Hold and admit transfers; those that need no turn go on, those that ended are idle."""
        turns: list[Admit | Hold] = []
        for action in actions:
            if not isinstance(action, Admit | Hold):
                continue
            j = self.serial[action.job]
            wait = self.waits[j][action.resource]
            match action:
                case Admit() if wait.admitted is not None:
                    wait.weight = action.weight
                case Admit():
                    wait.admit(self.now, action.weight)
                case Hold():
                    wait.hold(self.now)
                    self.watch(j)
            if wait.is_waiting or isinstance(action, Admit):
                turns.append(action)
        super().act(turn for turn in turns if self.is_open(turn))

    def is_open(self, turn: Admit | Hold) -> bool:
        """Tell whether there is something to transfer, or only a job that seems to."""
        return self.serial[turn.job] in self.resources[turn.resource].transfers

    def transfer(self, j: int, r: ResourceId, weight: float) -> None:
        """Let the job transfer on a resource from now on, if it has something to transfer."""
        resource = self.resources[r]
        if j not in resource.transfers:
            return
        x = resource.transfers[j]
        x.weight, x.max_share = weight, self.usable(j)
        resource.advance(self.now)
        resource.admit(x)
        resource.settle()

    # The ends of phases.

    def tell_ended(self, j: int, r: ResourceId, io: float) -> None:
        """The job falls idle on a resource; its phase is over once it was idle for a gap."""
        if self.gaps is None:
            self.waits[j].pop(r, None)
            super().tell_ended(j, r, io)
            return
        self.ended_io[j][r] = self.ended_io[j].get(r, 0.0) + io
        if not self.in_phase[j]:
            self.idle_since[j] = self.now
            self.detected_at[j] = self.now + self.gaps[j].seconds
            heapq.heappush(self.calendar, (self.detected_at[j], DETECT, j))

    def detect(self, j: int) -> None:
        """The job was idle for a gap, unless it has gone on meanwhile."""
        if self.detected_at[j] == self.now:
            self.report_end(j)

    def report_end(self, j: int) -> None:
        """Let the Manager hear of the end of the job's phase."""
        idle_since = self.idle_since[j]
        assert idle_since is not None
        ended, self.ended_io[j] = self.ended_io[j], {}
        self.waits[j], self.detected_at[j] = {}, math.inf
        for r, io in ended.items():
            self.tell(
                PhaseEnded(
                    time=self.now,
                    job=self.known[j].id,
                    resource=r,
                    io=io,
                    idle=self.now - idle_since,
                )
            )

    def end_job(self, j: int) -> None:
        """The job exits, which ends its phase at once."""
        if self.detected_at[j] < math.inf:
            self.report_end(j)
        super().end_job(j)
