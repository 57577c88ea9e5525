"""Small runs worked out by hand."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from penstock import registry
from penstock.errors import InputError
from penstock.model import (
    Action,
    Assign,
    Curve,
    Event,
    Hold,
    Job,
    JobStarted,
    Request,
    Site,
    View,
    WakeAt,
    Woke,
)
from penstock.policies.base import ByArrival, Sharing
from penstock.sim import reference
from penstock.sim.engine import simulate
from penstock.sim.knowledge import Knowledge
from penstock.sim.workload import Workload


def workload(*jobs: list[tuple[float, float]], **more: Any) -> Workload:
    phases = [phase for job in jobs for phase in job]
    return Workload(
        compute=[c for c, _ in phases],
        io=[i for _, i in phases],
        offsets=np.concatenate(([0], np.cumsum([len(job) for job in jobs]))),
        **{"release": np.zeros(len(jobs)), **more},
    )


def ends(policy: str, *jobs: list[tuple[float, float]], **more: Any) -> list[float]:
    site = more.pop("site", None)
    end = simulate(workload(*jobs, **more), registry.sharing(policy), site=site).end
    return [float(seconds) for seconds in end]


def test_two_large_jobs_share_or_take_turns() -> None:
    """Paper io-sets, Fig. 1, TWO LARGE: fair sharing needs 3 units for what turns do in 2."""
    large = [(1.0, 1.0)] * 4
    assert ends("fair-share", large, large) == [3, 6, 9, 12] * 2
    assert ends("exclusive-fcfs", large, large) == [2, 4, 6, 8, 3, 5, 7, 9]


def test_a_small_job_behind_a_large_one() -> None:
    """Paper io-sets, Fig. 1, LARGE+SMALL: exclusive makes the small job wait for the large one."""
    large, small = [(1.0, 1.0)], [(1.0, 0.01)]
    assert ends("exclusive-fcfs", large, small) == [2.0, pytest.approx(2.01)]
    assert ends("fair-share", large, small) == [pytest.approx(2.01), pytest.approx(1.02)]


def test_sets_share_by_weight() -> None:
    """w_iter 10 and 100: weights 0.1 and 0.01, so shares 10/11 and 1/11 (Equation 1)."""
    fast, slow = [(9.0, 1.0)], [(9.0, 91.0)]
    first, second = ends("set-10", fast, slow)
    assert first == pytest.approx(9 + 1 * 11 / 10)
    assert second == pytest.approx(9 + 92)


def test_what_a_job_cannot_use_of_its_resources_is_left_to_others() -> None:
    """Two resources of 10 B/s: a job with b(2) = 2 uses a tenth of each, so that one with
    b(2) = 20 has nine tenths, and 1 s of its own takes 1 / 0.9 s.

    In the model of paper io-resources (Fig. 4) each has half until the second has moved its 20
    bytes after 2 s; the first has 4 s of 5 s left then.
    """
    jobs = [(0.0, 5.0)], [(0.0, 1.0)]
    both = {
        "resources": [0, 1, 0, 1],
        "resource_offsets": [0, 2, 4],
        "curves": [Curve.of({1: 2.0, 2: 2.0}), Curve.of({1: 10.0, 2: 20.0})],
    }
    links = Site(resources=2, bandwidth=10.0, work_conserving=True)
    assert ends("fair-share", *jobs, site=links, **both) == pytest.approx([5.0, 1 / 0.9])
    occupied = replace(links, work_conserving=False)
    assert ends("fair-share", *jobs, site=occupied, **both) == pytest.approx([6.0, 2.0])


@pytest.mark.parametrize("bandwidth", [10e6, 1.0])
def test_curves_and_bandwidth_in_different_units_are_refused(bandwidth: float) -> None:
    """b(1) = 10 on a resource of 10 MB/s: the curve is in MB/s, and nothing is left to guess."""
    site = Site(bandwidth=bandwidth, work_conserving=True)
    with pytest.raises(InputError, match="in the same unit"):
        ends("fair-share", [(0.0, 1.0)], site=site, curves=[Curve.of({1: 10.0})])


def test_a_work_conserving_site_needs_a_bandwidth() -> None:
    with pytest.raises(InputError, match=r"needs site\.bandwidth"):
        Site(work_conserving=True)


def test_what_a_job_can_use_follows_its_resources() -> None:
    """On one resource of 10 B/s the job has b(1) = 5, half of it; on two b(2) = 8, 0.4 of each."""

    def widen(event: Event, view: View) -> list[Assign | WakeAt]:
        match event:
            case JobStarted(job=Job(id="0")):
                return [WakeAt(time=1.0)]
            case Woke():
                return [Assign(job="0", resources=(0, 1))]
        return []

    links = Site(resources=2, bandwidth=10.0, work_conserving=True)
    run = simulate(
        workload([(0.0, 2.0), (0.0, 8.0)], curves=[Curve.of({1: 5.0, 2: 8.0})]),
        registry.sharing("fair-share"),
        site=links,
        arbitrate=widen,
        timeline=True,
    )
    assert run.end.tolist() == pytest.approx([2.0, 7.0])  # 8 s at b(1) are 5 s at b(2)
    assert run.timeline is not None
    assert sorted(run.timeline.share.tolist()) == pytest.approx([0.4, 0.4, 0.5])


def test_one_job_of_a_set_at_a_time() -> None:
    job = [(9.0, 1.0)]
    assert ends("set-10", job, job, job) == [10, 11, 12]
    assert ends("share-priority", job, job, job) == pytest.approx([12, 12, 12])


@pytest.mark.parametrize("policy", ["exclusive-fcfs", "greedy-com"])
def test_what_a_job_is_called_does_not_matter(policy: str) -> None:
    jobs = [[(1.0, 10.0)], [(1.0, 10.0)], [(1.0, 10.0)]]
    assert ends(policy, *jobs, ids=["a", "all", "own"]) == [11, 21, 31]


def test_greedy_com_preempts_for_the_shorter_rest() -> None:
    assert ends("greedy-com", [(0.0, 10.0)], [(2.0, 3.0)]) == [13, 5]
    assert ends("greedy-com", [(0.0, 4.0)], [(2.0, 3.0)]) == [4, 7]


def test_greedy_yield_serves_who_lost_most() -> None:
    """Job 0 transfers from t = 1 on. At t = 3, the next event, job 1 has the yield 1/3 and takes
    over; it ends at 7, where jobs 0 and 2 tie at 3/7 and the earlier request wins."""
    assert ends("greedy-yield", [(1.0, 4.0)], [(1.0, 4.0)], [(3.0, 1.0)]) == [9, 7, 10]


def test_caps_are_filled_like_water() -> None:
    """Capacity 1 and caps 0.2, 1, 1: shares 0.2, 0.4, 0.4."""
    run = simulate(
        workload([(1.0, 1.0)], [(1.0, 1.0)], [(1.0, 1.0)], max_share=[0.2, 1.0, 1.0]),
        registry.sharing("fair-share"),
        timeline=True,
    )
    assert run.timeline is not None
    first = run.timeline.start == 1.0
    assert run.timeline.share[first].tolist() == pytest.approx([0.2, 0.4, 0.4])
    assert run.end.tolist() == pytest.approx([6.0, 3.5, 3.5])


def test_a_group_admits_the_next_while_caps_leave_room() -> None:
    """Caps 0.4: two fill 0.8, a third fits in part; the fourth waits."""
    run = simulate(
        workload(*[[(0.0, 1.0)]] * 4, max_share=[0.4] * 4),
        registry.sharing("exclusive-fcfs"),
        timeline=True,
    )
    assert run.timeline is not None
    assert set(run.timeline.job[run.timeline.start == 0.0]) == {0, 1, 2}
    assert run.timeline.share[run.timeline.start == 0.0].tolist() == pytest.approx([1 / 3] * 3)


def test_interference_lowers_the_capacity() -> None:
    """d = 1 - sum BW_multi / BW_single (paper packs, Section 1): d = 0.16 for two jobs."""
    alone = ends("fair-share", [(0.0, 1.0)], site=Site(capacity=(1.0, 0.84)))
    both = ends("fair-share", [(0.0, 1.0)], [(0.0, 1.0)], site=Site(capacity=(1.0, 0.84)))
    assert alone == [1.0]
    assert both == pytest.approx([2 / 0.84] * 2)


def test_a_phase_over_several_resources_ends_with_its_last_part() -> None:
    run = simulate(
        workload(
            [(0.0, 1.0)],
            [(0.0, 2.0)],
            resource_offsets=[0, 2, 3],
            resources=[0, 1, 1],
        ),
        registry.sharing("fair-share"),
        site=Site(resources=2),
        timeline=True,
    )
    assert run.end.tolist() == [2.0, 3.0]
    assert run.timeline is not None
    on_first = run.timeline.resource == 0
    assert run.timeline.end[on_first].tolist() == [1.0]


def test_jobs_queue_for_compute_nodes_in_order() -> None:
    run = simulate(
        workload([(5.0, 0.0)], [(2.0, 0.0)], [(1.0, 0.0)], nodes=[3, 2, 1]),
        registry.sharing("fair-share"),
        site=Site(nodes=4),
    )
    assert run.start.tolist() == [0.0, 5.0, 5.0]
    assert run.end.tolist() == [5.0, 7.0, 6.0]


def test_a_barrier_opens_when_its_last_job_ends() -> None:
    run = simulate(
        workload([(1.0, 0.0)], [(4.0, 0.0)], [(1.0, 0.0)], barrier=[0, 0, 1], after=[-1, -1, 0]),
        registry.sharing("fair-share"),
    )
    assert run.start.tolist() == [0.0, 0.0, 4.0]


def test_jobs_behind_a_barrier_queue_behind_those_that_wait_already() -> None:
    """At t = 4 both the waiting job 3 and job 2, freed by the barrier, want the one node."""
    run = simulate(
        workload(
            [(4.0, 0.0)],
            [(1.0, 0.0)],
            [(1.0, 0.0)],
            release=[0.0, 1.0, 0.0],
            barrier=[0, -1, 1],
            after=[-1, -1, 0],
        ),
        registry.sharing("fair-share"),
        site=Site(nodes=1),
    )
    assert run.start.tolist() == [0.0, 4.0, 5.0]


def test_a_barrier_of_a_single_job_holds() -> None:
    run = simulate(
        workload([(4.0, 0.0)], [(1.0, 0.0)], barrier=[0, -1], after=[-1, 0]),
        registry.sharing("fair-share"),
    )
    assert run.start.tolist() == [0.0, 4.0]


class Watcher(ByArrival):
    """Asks for everything a view can tell, at every decision."""

    dynamic = True
    preemptive = True

    def __init__(self) -> None:
        self.seen: list[tuple[float, ...]] = []

    def group(self, job: Job) -> str:
        return "all"

    def turn(self, request: Request, view: View) -> float:
        job = request.job
        self.seen.append(
            (view.now, job.serial, view.age(job), view.progress(job), view.remaining(request))
        )
        return float(job.serial)


def test_what_a_view_tells() -> None:
    """Job 0 (two resources) transfers from 3 on; job 1 comes at 5, and job 0 ends first there."""
    policy: Any = Watcher()
    simulate(
        workload(
            [(2.0, 4.0)],
            [(3.0, 1.0)],
            release=[0.0, 2.0],
            nodes=[2, 2],
            resource_offsets=[0, 2, 3],
            resources=[0, 1, 1],
        ),
        policy,
        site=Site(resources=2),
    )
    at_five = {row[1]: row[2:] for row in policy.seen if row[0] == 5.0}
    # Age, progress (compute and the slowest part of the I/O), remaining on the slowest resource.
    assert at_five == {0: (5.0, 5.0, 1.0), 1: (3.0, 3.0, 1.0)}


def test_age_counts_from_the_start_not_from_the_release() -> None:
    policy: Any = Watcher()
    simulate(
        workload([(4.0, 0.0)], [(1.0, 2.0)], [(2.0, 1.0)], nodes=[2, 1, 1]),
        policy,
        site=Site(nodes=2),
    )
    assert {row[1]: row[2] for row in policy.seen if row[0] == 6.0} == {1: 2.0, 2: 2.0}


@pytest.mark.parametrize(
    "answer",
    [
        Assign(job="0", resources=(9,)),
        Assign(job="0", resources=(-1,)),
        Assign(job="0", resources=()),
        Assign(job="0", resources=(0, 0)),
        Assign(job="0", resources=cast(tuple[int, ...], ("a",))),
        Assign(job="nobody", resources=(0,)),
        WakeAt(time=float("nan")),
        Hold(job="0", resource=0),
    ],
)
@pytest.mark.parametrize("run", [simulate, reference.simulate])
def test_a_hook_that_asks_for_the_impossible(run: Any, answer: Action) -> None:
    with pytest.raises(InputError, match="job hook"):
        run(
            workload([(1.0, 1.0)], [(1.0, 1.0)]),
            registry.sharing("fair-share"),
            site=Site(resources=2),
            arbitrate=lambda *_: [answer],
        )


def test_a_hook_moves_a_job_and_its_phases_keep_their_length() -> None:
    run = simulate(
        workload([(1.0, 2.0)] * 2),
        registry.sharing("fair-share"),
        site=Site(resources=2),
        arbitrate=lambda event, _: (
            [Assign(job="0", resources=(0, 1))] if isinstance(event, JobStarted) else []
        ),
        timeline=True,
    )
    assert run.end.tolist() == [3.0, 6.0]
    assert run.timeline is not None
    assert run.timeline.resource.tolist() == [0, 1, 0, 1]


def test_learned_w_iter_moves_a_job_to_its_set() -> None:
    """Unknown at first (set 5, the lowest weight), then 10 s: set 1."""
    jobs = [[(9.0, 1.0)] * 6, [(5.0, 200.0)]]
    timelines = {}
    for kind in ("exact", "learned"):
        run = simulate(
            workload(*jobs),
            registry.sharing("set-10"),
            knowledge=Knowledge(kind=kind),
            timeline=True,
        )
        assert run.timeline is not None
        mine = run.timeline.job == 0
        timelines[kind] = run.timeline.share[mine]
    assert timelines["exact"][0] == pytest.approx(10 / 11)
    # Neither job has a history at first: one waits for the other in the set of such jobs.
    assert timelines["learned"].max() == 1.0


class LongestFirst(ByArrival):
    """A researcher's policy in a few lines."""

    def group(self, job: Job) -> str:
        return "all"

    def turn(self, request: Request, view: View) -> float:
        assert request.io is not None
        return -request.io


def test_a_policy_in_plain_python() -> None:
    run = simulate(
        workload([(0.0, 5.0)], [(1.0, 1.0)], [(2.0, 3.0)]), cast(Sharing, LongestFirst())
    )
    assert run.end.tolist() == [5.0, 9.0, 8.0]


class Broken(LongestFirst):
    def turn(self, request: Request, view: View) -> float:
        raise RuntimeError("no turn today")


class NoNumber(LongestFirst):
    def turn(self, request: Request, view: View) -> float:
        return float("nan")


class Keeper(LongestFirst):
    kept: View

    def turn(self, request: Request, view: View) -> float:
        self.kept = view
        return 0.0


def test_errors_of_a_policy_reach_its_author() -> None:
    jobs = workload([(0.0, 5.0)], [(1.0, 1.0)])
    with pytest.raises(RuntimeError, match="no turn today"):
        simulate(jobs, cast(Sharing, Broken()))
    with pytest.raises(ValueError, match="NaN"):
        simulate(jobs, cast(Sharing, NoNumber()))


def test_a_view_does_not_outlive_its_run() -> None:
    policy: Any = Keeper()
    simulate(workload([(0.0, 5.0)], [(1.0, 1.0)]), policy)
    with pytest.raises(RuntimeError, match="only while its run lasts"):
        _ = policy.kept.now


class Weightless(ByArrival):
    def group(self, job: Job) -> str:
        return "all"

    def weight(self, job: Job) -> float:
        return 0.0


@pytest.mark.parametrize("kind", ["exact", "learned"])
def test_a_weight_of_zero_is_refused(kind: Any) -> None:
    with pytest.raises(InputError, match="give 1e-12 to 1e12"):
        simulate(workload([(0.0, 5.0)]), Weightless(), knowledge=Knowledge(kind=kind))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"release": [float("nan"), 0]}, "release"),
        ({"max_share": [0.0, 1.0]}, "max_share"),
        ({"nodes": [0, 1]}, "nodes"),
        ({"resources": [0, 3]}, "resource 3"),
        ({"ids": ["a", "a"]}, "used twice"),
        ({"barrier": [0, 1], "after": [1, 0]}, "circle"),
    ],
)
def test_impossible_workloads_are_refused(more: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(workload([(1.0, 1.0)], [(1.0, 1.0)], **more), registry.sharing("fair-share"))


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_durations_must_be_numbers_of_seconds(bad: float) -> None:
    with pytest.raises(InputError, match=r"job '1', phases\[1\], io is"):
        simulate(workload([(1, 1)], [(1, 1), (1, bad)]), registry.sharing("fair-share"))
