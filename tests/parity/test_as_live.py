"""A simulation as live, and the controller's own turns fed with its events: the same admissions.

Admissions and releases are the same in time, and give the same shares.

The simulation says when phases begin and end, which is physics. `Turns` of the controller hears of
each at its time, looks for overdue phases when one may be, and decides who transfers when.
"""

import heapq
from collections.abc import Iterator

import numpy as np
import pytest

from penstock import registry
from penstock.core.ledger import Ledger
from penstock.core.manager import Manager
from penstock.live.controller.turn_state import PhaseReport, Release
from penstock.live.controller.turns import Turns
from penstock.model import Action, Admit, Hold, Site
from penstock.sim.as_live import AsLive
from penstock.sim.run import Run
from penstock.sim.workload import Workload

MAX_WAIT = 6.0
START, BEGIN, END, EXIT, LOOK = range(5)


def workload(seed: int, jobs: int = 8, phases: int = 6) -> Workload:
    """Return jobs of three users that often want to write at the same time; no times are equal."""
    rng = np.random.default_rng(seed)
    n = jobs * phases
    return Workload(
        compute=rng.uniform(0.5, 20.0, n),
        io=rng.uniform(0.1, 6.0, n),
        offsets=np.arange(0, n + 1, phases),
        release=rng.uniform(0.0, 10.0, jobs),
        details=[{"user": "abc"[int(rng.integers(3))]} for _ in range(jobs)],
    )


Begin = tuple[float, str, float]
"""When a phase began to transfer, whose it was, and with which share of the bandwidth."""


def simulated(run: Run) -> list[Begin]:
    """Return how each phase began to transfer, in order."""
    timeline = run.timeline
    assert timeline is not None
    work, starts = run.workload, []
    for j in range(len(work)):
        for i in range(*work.offsets[j : j + 2]):
            mine = np.flatnonzero((timeline.job == j) & (timeline.start >= run.request[i]))
            first = mine[timeline.start[mine].argmin()]
            starts.append((float(timeline.start[first]), work.id(j), float(timeline.share[first])))
    return sorted(starts)


def events(run: Run) -> Iterator[tuple[float, int, int, int]]:
    """Yield what agents would report: time, kind, job, number of the phase."""
    work = run.workload
    for j in range(len(work)):
        yield float(run.start[j]), START, j, 0
        first, stop = work.offsets[j : j + 2]
        for number, i in enumerate(range(first, stop), 1):
            yield float(run.request[i]), BEGIN, j, number
            yield float(run.end[i]), END, j, number
            yield float(run.request[i]) + MAX_WAIT, LOOK, j, number
        yield float(run.end[stop - 1]), EXIT, j, 0


def decided(run: Run, policy: str, *, fair_users: bool) -> tuple[list[Begin], int]:
    """Return how the controller lets each phase transfer, and how many without a turn."""
    ledger = Ledger(site=Site())
    manager = Manager(sharing=registry.sharing(policy), view=ledger, fair_users=fair_users)
    turns = Turns(manager, ledger)
    known = list(run.workload.jobs())
    begins: list[Begin] = []
    released, weights = 0, dict[str, float]()
    calendar = list(events(run))
    heapq.heapify(calendar)
    while calendar:
        now, kind, j, number = heapq.heappop(calendar)
        id = known[j].id
        actions: list[Action] | list[Release] = []
        match kind:
            case 0:
                actions = turns.started(now, known[j])
            case 1:
                actions = turns.phase_began(now, id, number)
            case 2:
                weights.pop(id, None)
                report = PhaseReport(number=number, bytes=1, seconds=1.0, waited=0.0)
                actions = turns.phase_ended(now, id, report)
            case 3:
                actions = turns.ended(now, id)
            case _:
                actions = turns.release_overdue(now, MAX_WAIT)
        for action in actions:
            if isinstance(action, Admit | Release):
                is_new = action.job not in weights
                weights[action.job] = action.weight
                if is_new:
                    share = action.weight / sum(weights.values())
                    begins.append((now, action.job, share))
                    released += isinstance(action, Release)
            elif isinstance(action, Hold) and action.job in weights:
                raise AssertionError("no policy here preempts")
    return sorted(begins), released


@pytest.mark.parametrize("fair_users", [True, False])
@pytest.mark.parametrize("policy", ["exclusive-fcfs", "lowest-id", "set-10", "set-fair-share"])
@pytest.mark.parametrize("seed", range(6))
def test_the_controller_admits_whom_the_simulation_admits(
    policy: str, fair_users: bool, seed: int
) -> None:
    rules = AsLive(max_wait=MAX_WAIT, fair_users=fair_users)
    run = rules.simulate(workload(seed), registry.sharing(policy), timeline=True)
    admissions, released = decided(run, policy, fair_users=fair_users)
    expected = simulated(run)
    assert [begin[:2] for begin in admissions] == [begin[:2] for begin in expected]
    shares = [share for *_, share in admissions]
    assert shares == pytest.approx([share for *_, share in expected])
    assert released == run.released
    if policy == "exclusive-fcfs":
        assert released > 0, "some waited for too long"
