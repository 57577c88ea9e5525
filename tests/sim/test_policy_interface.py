"""What a policy defines is what runs: simulated, by the reference, and live."""

from collections.abc import Callable

import numpy as np
import pytest

from penstock import registry
from penstock.errors import InputError
from penstock.model import Event, Job, JobStarted, PhaseEnded, Request, View, Woke
from penstock.policies.base import ByArrival, Own, Sharing
from penstock.policies.sharing.greedy_com import GreedyCom
from penstock.sim import engine, reference
from penstock.sim.as_live import AsLive
from penstock.sim.generators.io_sets import io_sets, three_profiles
from penstock.sim.generators.packs import table_1
from penstock.sim.knowledge import Knowledge
from penstock.sim.metrics import measure, measure_jobs
from penstock.sim.run import Run
from penstock.sim.workload import Workload

EIGHT_JOBS = io_sets(three_profiles(3, 3, 2), seed=4, horizon=600.0)


def workload(*jobs: list[tuple[float, float]], **more: object) -> Workload:
    rows = [row for job in jobs for row in job]
    columns: dict[str, object] = {
        "compute": [compute for compute, _ in rows],
        "io": [io for _, io in rows],
        "offsets": np.cumsum([0, *map(len, jobs)]),
        "release": np.zeros(len(jobs)),
    }
    return Workload(**columns | more)  # type: ignore[arg-type]


def both(work: Workload, policy: Sharing) -> list[float]:
    """Return the ends of phases, the same by the engine and by the reference."""
    native, slow = engine.simulate(work, policy), reference.simulate(work, policy)
    np.testing.assert_array_equal(native.end, slow.end)
    return [float(end) for end in native.end]


class ShortFirst(ByArrival):
    """The policy of the README; it says nothing of how the engine is to call it."""

    preemptive = True

    def group(self, job: Job) -> str:
        return "all"

    def turn(self, request: Request, view: View) -> float:
        return request.job.w_iter or float("inf")


class LongestRest(GreedyCom):
    """Overrides what a built-in policy is known by."""

    def turn(self, request: Request, view: View) -> float:
        return -super().turn(request, view)


def test_a_turn_that_is_overridden_is_called() -> None:
    """It was simulated as first come first served, and enforced as itself."""
    both(EIGHT_JOBS, ShortFirst())
    first_come = engine.simulate(EIGHT_JOBS, registry.sharing("exclusive-fcfs"))
    short_first = engine.simulate(EIGHT_JOBS, ShortFirst())
    assert not np.array_equal(first_come.end, short_first.end)


def test_so_is_that_of_a_subclass_of_a_built_in_policy() -> None:
    assert both(EIGHT_JOBS, LongestRest()) != both(EIGHT_JOBS, GreedyCom())


def test_a_turn_set_on_the_instance_is_called() -> None:
    policy = GreedyCom()
    policy.turn = lambda request, view: 1.0 / request.io  # type: ignore[method-assign, operator]
    assert both(EIGHT_JOBS, policy) != both(EIGHT_JOBS, GreedyCom())


class SecondThoughts(GreedyCom):
    """Changes at every event the options that a built-in policy has from the start."""

    def observe(self, event: Event, view: View) -> None:
        self.hedge = 50.0 - self.hedge
        self.unknown = 1000.0 - self.unknown


def test_options_that_a_policy_changes_are_those_that_count() -> None:
    """The engine read them once, and simulated another policy than the reference."""
    for knowledge in (Knowledge(), Knowledge(kind="noisy"), Knowledge(kind="learned")):
        native, slow = (
            simulate(EIGHT_JOBS, SecondThoughts(hedge=0.0), knowledge=knowledge)
            for simulate in (engine.simulate, reference.simulate)
        )
        np.testing.assert_array_equal(native.end, slow.end)


def test_all_requests_of_one_instant_are_compared() -> None:
    """Both ask at 3 s: the shorter phase goes first, whichever job is listed first."""
    assert both(workload([(3, 5)], [(3, 1)]), registry.sharing("shortest-io")) == [9.0, 4.0]
    assert both(workload([(3, 1)], [(3, 5)]), registry.sharing("shortest-io")) == [4.0, 9.0]


def test_a_request_of_the_instant_in_which_a_transfer_ends_is_compared() -> None:
    work = workload([(0, 3)], [(1, 5)], [(3, 1)])
    assert both(work, registry.sharing("shortest-io")) == [3.0, 9.0, 4.0]


@pytest.mark.parametrize(
    ("order", "largest"),
    [
        ("shortest-io", 1.322),
        ("longest-remaining", 1.322),
        ("worst-stretch", 1.322),
        ("lowest-io-ratio", 1.323),
    ],
)
def test_table_1_of_packs_with_ties_decided_by_the_order(order: str, largest: float) -> None:
    """By two independent programs; each was 1.387 when the job listed first won every tie."""
    run = engine.simulate(table_1(), registry.sharing(order))
    stretch = measure_jobs(run, (0.0, run.makespan)).stretch
    assert stretch.max() == pytest.approx(largest, abs=0.0006)


def test_a_job_that_cannot_use_all_the_bandwidth_loses_nothing_alone() -> None:
    narrow = workload([(10, 10), (10, 10)], max_share=[0.5])
    for simulate in (engine.simulate, reference.simulate):
        metrics = measure(simulate(narrow, registry.sharing("fair-share")))
        assert metrics.makespan == 60.0
        assert (metrics.min_yield, metrics.max_stretch, metrics.io_slowdown) == (1.0, 1.0, 1.0)


class TwoAtATime(ByArrival):
    places = 2

    def group(self, job: Job) -> str:
        return "all"


def test_a_group_may_have_several_places() -> None:
    """Two jobs share, the third waits: 2, 2, then 3."""
    assert both(workload([(0, 1)], [(0, 1)], [(0, 1)]), TwoAtATime()) == [2.0, 2.0, 3.0]


class OldFirst(ByArrival):
    """A weight that looks at the view, and holds for the phase."""

    def group(self, job: Job, view: View) -> object:
        return Own.GROUP if view.now < 5 else "late"

    def weight(self, job: Job, view: View) -> float:  # type: ignore[override]
        return 1.0 + view.age(job)


def test_group_and_weight_may_look_at_the_view() -> None:
    """At 0 both share equally; at 6 b has come to a group in which a waits."""
    work = workload([(0, 2), (2, 3)], [(0, 2), (2, 1)])
    assert both(work, OldFirst()) == [4.0, 9.0, 4.0, 10.0]


class Served(ByArrival):
    """Weighs jobs by how little they were served, from the events that it was shown."""

    reweighs = True

    def __init__(self) -> None:
        self.served: dict[str, float] = {}

    def group(self, job: Job) -> Own:
        return Own.GROUP

    def observe(self, event: Event, view: View) -> None:
        if isinstance(event, PhaseEnded):
            self.served[event.job] = self.served.get(event.job, 0.0) + event.io

    def weight(self, job: Job, view: View) -> float:  # type: ignore[override]
        return 1.0 / (1.0 + self.served.get(job.id, 0.0))


def test_weights_may_change_while_a_phase_transfers() -> None:
    """a and b share; a's first phase ends at 4 after 2 s served, then a weighs a third of b."""
    work = workload([(0, 2), (0, 1)], [(0, 5)])
    # b has 3 s left at 4 and 3/4 of the rate; a needs 1 s at 1/4, both would end at 8.
    native = engine.simulate(work, Served(), timeline=True)
    slow = reference.simulate(work, Served(), timeline=True)
    np.testing.assert_array_equal(native.end, slow.end)
    assert native.end.tolist() == [4.0, 8.0, 8.0]


class Alternate(ByArrival):
    """Gives the resource to another job every second."""

    preemptive = dynamic = True

    def __init__(self) -> None:
        self.rounds = 0

    def group(self, job: Job) -> str:
        return "all"

    def observe(self, event: Event, view: View) -> float | None:
        match event:
            case Woke():
                self.rounds += 1
                return view.now + 1.0
            case JobStarted(job=Job(serial=0)):
                return view.now + 1.0
        return None

    def turn(self, request: Request, view: View) -> float:
        return (request.job.serial + self.rounds) % 2


def test_a_policy_can_be_woken() -> None:
    work = workload([(0, 2)], [(0, 2)])
    for simulate in (engine.simulate, reference.simulate):
        assert simulate(work, Alternate()).end.tolist() == [3.0, 4.0]


def test_a_run_leaves_no_trace_in_a_policy_with_a_state() -> None:
    """The same object simulated again, as by `simulate --repeat`, gives the same run."""
    policy = registry.sharing("token-bucket")
    ends = [simulate(EIGHT_JOBS, policy).end.tolist() for simulate in (engine.simulate,) * 2]
    assert ends[0] == ends[1]


def test_a_wake_in_the_past_is_refused() -> None:
    class Restless(Alternate):
        def observe(self, event: Event, view: View) -> float:
            return view.now

    for simulate in (engine.simulate, reference.simulate):
        with pytest.raises(InputError, match="observe"):
            simulate(workload([(0, 2)]), Restless())


def test_progress_counts_the_compute_phase_under_way() -> None:
    """At 100 s a job that computes for 1000 s has done 100: it was 0 in simulation, 100 live."""
    seen: list[float] = []

    class Look(ByArrival):
        def group(self, job: Job) -> str:
            return "all"

        def turn(self, request: Request, view: View) -> float:
            seen.append(view.progress(view.jobs["2"]))
            return 0.0

    work = workload([(100, 50)], [(100, 50)], [(1000, 1)])
    for simulate in (engine.simulate, reference.simulate):
        seen.clear()
        simulate(work, Look())
        assert seen[0] == 100.0


@pytest.mark.parametrize("policy", ["greedy-com", "shortest-io", "shortest-remaining"])
def test_wrong_estimates_are_wrong_for_every_policy(policy: str) -> None:
    """Only w_iter had an error: greedy-com kept its oracle at any noise."""
    exact = engine.simulate(EIGHT_JOBS, registry.sharing(policy))
    noise = Knowledge(kind="noisy", decades=1.0)
    noisy = engine.simulate(EIGHT_JOBS, registry.sharing(policy), knowledge=noise)
    assert not np.array_equal(exact.end, noisy.end)


def test_a_phase_cut_by_the_window_counts_by_what_it_has_moved() -> None:
    """b waits from 1 to 9 and has moved 1 of 4 s at 10; by elapsed time it would be 9/12."""
    work = workload([(0, 9)], [(1, 4)])
    run = engine.simulate(work, registry.sharing("exclusive-fcfs"), marks=(0.0, 10.0))
    jobs = measure_jobs(run, (0.0, 10.0))
    assert jobs.io.tolist() == [9.0, 1.0]
    with pytest.raises(ValueError, match="no mark at 11 s"):
        measure_jobs(run, (0.0, 11.0))


class Restless(Alternate):
    """Asks to be woken again at once."""

    def __init__(self, after: float, wakes: float = float("inf")) -> None:
        super().__init__()
        self.after, self.wakes = after, wakes

    def observe(self, event: Event, view: View) -> float | None:
        self.wakes -= isinstance(event, Woke)
        return view.now + self.after if self.wakes > 0 else None


@pytest.mark.parametrize("simulate", [engine.simulate, reference.simulate, AsLive().simulate])
def test_a_policy_that_is_woken_without_end_is_an_error(simulate: Callable[..., Run]) -> None:
    """Time passed by a nanosecond per wake: the simulation never ended."""
    with pytest.raises(InputError, match=r"Restless: observe\(\) asked 1000 times in a row"):
        simulate(workload([(1, 2)], [(0, 2)]), Restless(after=1e-9))


def test_some_early_wakes_are_no_error() -> None:
    """The next of regular times may be any time from now, so a single one may be early."""
    both(workload([(1, 2)], [(0, 2)]), Restless(after=1e-9, wakes=900))
    both(workload([(1, 2)], [(0, 2)]), Restless(after=1.5e-3))
