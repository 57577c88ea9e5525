"""A simulation with what only a live site has: bounded waits, fair users, detected phases."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Case, cases, examples

from penstock import registry
from penstock.learn.phases import Ended, PhaseFinder
from penstock.model import Event, Job, PhaseEnded, View
from penstock.policies.base import ByArrival, Own
from penstock.sim import reference
from penstock.sim.as_live import AsLive
from penstock.sim.knowledge import Knowledge
from penstock.sim.run import Run
from penstock.sim.workload import Workload

POLICIES = sorted(registry.POLICIES["sharing"])


def jobs(*phases: list[tuple[float, float]], users: str | None = None) -> Workload:
    """Return jobs that are there from the start, each with its phases of compute and I/O."""
    flat = [phase for job in phases for phase in job]
    return Workload(
        compute=[compute for compute, _ in flat],
        io=[io for _, io in flat],
        offsets=np.cumsum([0, *map(len, phases)]),
        release=np.zeros(len(phases)),
        details=None if users is None else [{"user": user} for user in users],
    )


def simulate(work: Workload, policy: str, **rules: Any) -> Run:
    return AsLive(**rules).simulate(work, registry.sharing(policy), timeline=True)


def transfers(run: Run, j: int) -> list[tuple[float, float]]:
    """Return when a job transferred, as intervals that do not touch."""
    timeline = run.timeline
    assert timeline is not None
    merged: list[tuple[float, float]] = []
    mine = timeline.job == j
    for start, end in sorted(zip(timeline.start[mine], timeline.end[mine], strict=True)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((float(start), float(end)))
    return merged


@pytest.mark.parametrize("name", POLICIES)
@given(case=cases(), knowledge=st.sampled_from([Knowledge(), Knowledge(kind="noisy")]))
@examples(25)
def test_what_adds_nothing_changes_nothing(name: str, case: Case, knowledge: Knowledge) -> None:
    """Without a bound, with one user per site and ends seen at once: the run of the reference."""
    plain, live = (
        simulate(
            case.workload,
            registry.sharing(name),
            site=case.site,
            knowledge=knowledge,
            timeline=True,
        )
        for simulate in (reference.simulate, AsLive().simulate)
    )
    for one, other in ((plain, live), (plain.timeline, live.timeline)):
        for field in ("request", "end", "start", "job", "resource", "share"):
            if hasattr(one, field):
                np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
    assert live.released == 0


@pytest.mark.parametrize(
    "name", ["best-next-event", "exclusive-fcfs", "greedy-com", "greedy-yield", "set-10"]
)
@given(
    case=cases(),
    max_wait=st.sampled_from([0.3, 2.0]),
    longest_gap=st.sampled_from([0.0, 1.0]),
    fair_users=st.booleans(),
)
@examples(40)
def test_no_phase_waits_for_longer_than_it_may(
    name: str, case: Case, max_wait: float, longest_gap: float, fair_users: bool
) -> None:
    """From max-wait after its request on a phase transfers until it ends, whoever has the turn."""
    run = AsLive(
        max_wait=max_wait, shortest_gap=longest_gap, longest_gap=longest_gap, fair_users=fair_users
    ).simulate(case.workload, registry.sharing(name), site=case.site, timeline=True)
    timeline = run.timeline
    assert timeline is not None
    for j in range(len(case.workload)):
        for i in range(*case.workload.offsets[j : j + 2]):
            due, end = run.request[i] + max_wait, run.end[i]
            for r in case.workload.resources_of(j):
                mine = (timeline.job == j) & (timeline.resource == r) & (timeline.end <= end)
                spans = [
                    (max(start, due), stop)
                    for start, stop in zip(timeline.start[mine], timeline.end[mine], strict=True)
                    if stop > due
                ]
                covered = math.fsum(stop - start for start, stop in spans)
                last = max((stop for _, stop in spans), default=due)
                assert covered == pytest.approx(max(last - due, 0.0), abs=1e-6)


def test_a_released_phase_transfers_beside_the_one_whose_turn_it_is() -> None:
    """b asks at 1 and waits for a, which writes 10 s from 1 on: from 3 on each has a half."""
    work = jobs([(1.0, 10.0)], [(1.0, 2.0)])
    run = simulate(work, "exclusive-fcfs", max_wait=2.0)
    assert transfers(run, 1) == [(3.0, 7.0)]
    assert run.end.tolist() == [13.0, 7.0]
    assert run.released == 1


class Light(ByArrival):
    """Jobs of 1 s before their first phase take turns with a small weight, the others share."""

    def group(self, job: Job) -> object:
        return "light" if job.serial < 2 else Own.GROUP

    def weight(self, job: Job) -> float:
        return 0.001 if job.serial < 2 else 0.003


def test_a_released_phase_has_the_weight_of_the_heaviest_beside_it() -> None:
    """b waits for a and is released at 3, beside a alone, and beside a and c.

    a has a weight of 0.001 and c, from 2 on, of 0.003. Beside a, b has a half, as if no weight was
    given. Beside both it has 3/7, as c: its 3 s take 7 s.
    """
    rules = AsLive(max_wait=2.0)
    pair = rules.simulate(jobs([(1.0, 10.0)], [(1.0, 2.0)]), Light())
    assert pair.end == pytest.approx([13.0, 7.0])
    three = rules.simulate(jobs([(1.0, 10.0)], [(1.0, 3.0)], [(2.0, 5.0)]), Light())
    assert three.end[1] == pytest.approx(10.0)


def test_the_order_of_the_others_stays_as_it_is() -> None:
    """b is released at 4, and shares with a until 6; then it is b's turn, and c waits on.

    c, which asked at 3.5, is released at 6.5; b has 3.5 s left then and c one: c ends at 8.5.
    """
    work = jobs([(1.0, 4.0)], [(1.0, 5.0)], [(3.5, 1.0)])
    run = simulate(work, "exclusive-fcfs", max_wait=3.0)
    assert transfers(run, 1) == [(4.0, 11.0)]
    assert transfers(run, 2) == [(6.5, 8.5)]
    assert run.end.tolist() == [6.0, 11.0, 8.5]
    assert run.released == 2


def test_turns_alternate_between_users() -> None:
    """x writes first; then z, of the other user, before the second and third of its own user."""
    phases = [[(1.0, 1.0)], [(1.1, 1.0)], [(1.2, 1.0)], [(1.3, 1.0)]]
    plain = simulate(jobs(*phases, users="xxxz"), "exclusive-fcfs")
    fair = simulate(jobs(*phases, users="xxxz"), "exclusive-fcfs", fair_users=True)
    assert plain.end.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert fair.end.tolist() == [2.0, 4.0, 5.0, 3.0]


def test_the_end_of_a_phase_is_seen_after_a_gap() -> None:
    """a writes from 1 to 3, and computes on; b, which waits, has its turn half a second later."""
    work = jobs([(1.0, 2.0), (10.0, 1.0)], [(2.0, 1.0)])
    run = simulate(work, "exclusive-fcfs", shortest_gap=0.5, longest_gap=0.5)
    assert transfers(run, 0)[0] == (1.0, 3.0)
    assert transfers(run, 1) == [(3.5, 4.5)]
    assert run.request[1] == 13.0, "the job itself does not wait for the controller to notice"


def test_a_pause_shorter_than_the_gap_is_a_part_of_the_phase() -> None:
    """a pauses for 0.2 s at 3 and keeps its turn: its phase is seen to end at 5.2 + 0.5."""
    work = jobs([(1.0, 2.0), (0.2, 2.0), (10.0, 1.0)], [(2.0, 1.0)])
    run = simulate(work, "exclusive-fcfs", shortest_gap=0.5, longest_gap=0.5)
    assert transfers(run, 0)[:2] == [(1.0, 3.0), (3.2, 5.2)]
    [span] = transfers(run, 1)
    assert span == pytest.approx((5.7, 6.7))


def test_who_is_released_during_a_pause_goes_on_when_the_pause_is_over() -> None:
    """b waits from 2 on, is released at 3.1 while a pauses from 3 to 3.2, and then both share."""
    work = jobs([(1.0, 2.0), (0.2, 2.0), (10.0, 1.0)], [(2.0, 1.1)])
    run = simulate(work, "exclusive-fcfs", max_wait=1.1, shortest_gap=0.5, longest_gap=0.5)
    [span] = transfers(run, 1)
    assert span == pytest.approx((3.1, 5.2))
    assert run.end[1] == pytest.approx(6.2)


def test_the_exit_of_a_job_ends_its_phase_at_once() -> None:
    work = jobs([(1.0, 2.0)], [(2.0, 1.0)])
    run = simulate(work, "exclusive-fcfs", shortest_gap=0.5, longest_gap=0.5)
    assert transfers(run, 1) == [(3.0, 4.0)]


class Ends(ByArrival):
    """Records when the ends of phases are reported, and how long the job had been idle."""

    reports: list[tuple[float, float]]

    def __init__(self, reports: list[tuple[float, float]]) -> None:
        self.reports = reports

    def __deepcopy__(self, memo: dict[int, Any]) -> "Ends":
        return self

    def group(self, job: Job) -> str:
        return "all"

    def observe(self, event: Event, view: View) -> None:
        if isinstance(event, PhaseEnded):
            self.reports.append((event.time, event.idle))


def test_gaps_are_those_that_the_agents_learn() -> None:
    """A job alone, with short pauses and long ones: sampled every ms by an agent's phase finder."""
    phases = [(3.0, 1.0), (0.03, 1.0), (2.0, 0.5), (0.04, 0.5), (4.0, 1.0), (2.5, 1.0), (3.0, 1.0)]
    reports: list[tuple[float, float]] = []
    rules = AsLive(shortest_gap=0.05, longest_gap=5.0)
    rules.simulate(jobs(phases), Ends(reports))

    busy, now = [], 0.0
    for compute, io in phases:
        busy.append((now + compute, now + compute + io))
        now += compute + io
    finder, ends, moved = PhaseFinder(shortest_gap=0.05, longest_gap=5.0), [], 0
    for step in range(round(now * 1000)):
        at = step / 1000
        calls = any(start <= at < end for start, end in busy)
        moved += 2**20 if calls else 0
        last = max((min(end, at) for start, end in busy if start <= at), default=0.0)
        change = finder.sample(at, busy=calls, last_call=last, moved=moved, waiting=False)
        if isinstance(change, Ended):
            ends.append((at, at - change.time))
    assert len(reports) == len(ends) + 1, "the last one ends with its job"
    assert [idle for _, idle in reports[:-1]] == pytest.approx([idle for _, idle in ends], abs=0.01)
    assert [time for time, _ in reports[:-1]] == pytest.approx([time for time, _ in ends], abs=0.01)
    assert len({round(idle, 2) for _, idle in ends}) > 1, "the gap was learnt"
