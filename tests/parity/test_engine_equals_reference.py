"""The native engine and the Manager under the fluid clock agree to the last bit."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Case, cases, examples

from penstock import registry
from penstock.core.arbiter import Arbiter
from penstock.model import (
    Assign,
    Curve,
    Event,
    Job,
    JobStarted,
    PhaseEnded,
    Request,
    Site,
    View,
    WakeAt,
    Woke,
)
from penstock.policies.base import ByArrival, Own, Sharing
from penstock.sim import engine, reference
from penstock.sim.knowledge import Knowledge
from penstock.sim.run import Run

POLICIES = sorted(registry.POLICIES["sharing"])
KNOWLEDGE = st.sampled_from(
    [Knowledge(), Knowledge(kind="learned"), Knowledge(kind="noisy", decades=1.0)]
)


def in_plain_python(policy: Sharing) -> Sharing:
    """Return the same policy with a `turn` that the engine does not know: every turn is a call."""
    kind = type(policy)

    class Called(kind):  # type: ignore[misc, valid-type]
        def turn(self, request: Request, view: View) -> float:
            return float(super().turn(request, view))

    called: Sharing = Called()
    return called


def assert_equal(one: Run, other: Run) -> None:
    for name in ("request", "end", "start"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.phase_ends == other.phase_ends
    assert one.timeline is not None
    assert other.timeline is not None
    assert one.moved is not None
    assert other.moved is not None
    assert one.moved.keys() == other.moved.keys()
    for time, moved in one.moved.items():
        np.testing.assert_array_equal(moved, other.moved[time], err_msg=f"moved at {time}")
    for name in ("job", "resource", "start", "end", "share"):
        np.testing.assert_array_equal(
            getattr(one.timeline, name), getattr(other.timeline, name), err_msg=name
        )


@pytest.mark.parametrize("name", POLICIES)
@given(case=cases(), knowledge=KNOWLEDGE)
@examples(150)
def test_engine_equals_reference(name: str, case: Case, knowledge: Knowledge) -> None:
    policy = registry.sharing(name)
    options: dict[str, Any] = {"site": case.site, "knowledge": knowledge, "timeline": True}
    assert_equal(
        engine.simulate(case.workload, policy, **options),
        reference.simulate(case.workload, policy, **options),
    )


@pytest.mark.parametrize("name", POLICIES)
@given(case=cases())
@examples(40)
def test_a_policy_in_plain_python_gives_the_same_run(name: str, case: Case) -> None:
    lowered = engine.simulate(case.workload, registry.sharing(name), site=case.site, timeline=True)
    called = engine.simulate(
        case.workload, in_plain_python(registry.sharing(name)), site=case.site, timeline=True
    )
    assert_equal(lowered, called)


class Deficit(ByArrival):
    """All that a policy can say: state from events, wakes, weights and places by the view."""

    reweighs = True

    def __init__(self, places: int, preemptive: bool, period: float) -> None:
        self.places, self.period = places, period
        self.preemptive = self.dynamic = preemptive  # type: ignore[misc]
        self.rounds, self.served = 0, dict[str, float]()

    def group(self, job: Job, view: View) -> Hashable:
        return Own.GROUP if (job.serial + self.rounds) % 3 == 0 else job.serial % 2

    def weight(self, job: Job, view: View) -> float:  # type: ignore[override]
        return 1.0 + view.age(job) / (1.0 + self.served.get(job.id, 0.0))

    def turn(self, request: Request, view: View) -> float:
        return view.io_done(request.job) - view.done(request) + (self.rounds % 4)

    def observe(self, event: Event, view: View) -> float | None:
        match event:
            case Woke():
                self.rounds += 1
                self.places = self.places % 3 + 1
                return view.now + self.period
            case PhaseEnded():
                self.served[event.job] = self.served.get(event.job, 0.0) + event.io
            case JobStarted(job=Job(serial=0)):
                return view.now + self.period
        return None


@given(
    case=cases(),
    places=st.integers(1, 3),
    preemptive=st.booleans(),
    period=st.sampled_from([0.5, 1.7]),
    knowledge=KNOWLEDGE,
)
@examples(300)
def test_policies_with_state_changing_weights_and_several_places(
    case: Case, places: int, preemptive: bool, period: float, knowledge: Knowledge
) -> None:
    runs = [
        simulate(
            case.workload,
            Deficit(places, preemptive, period),
            site=case.site,
            knowledge=knowledge,
            marks=(1.0, 4.5),
            timeline=True,
        )
        for simulate in (engine.simulate, reference.simulate)
    ]
    assert_equal(*runs)


class Rotate:
    """Moves job k to resource k + number of events so far, or to none that exists; wakes itself."""

    def __init__(self, site: Site) -> None:
        self.resources = site.resources
        self.direct = site.direct
        self.seen: list[Event] = []

    def __call__(self, event: Event, view: View) -> list[Assign | WakeAt]:
        self.seen.append(event)
        if isinstance(event, JobStarted):
            width = (len(self.seen) + 1 - self.direct) % (self.resources + 1) or 1 - self.direct
            places = tuple((event.job.serial + k) % self.resources for k in range(width))
            return [Assign(job=event.job.id, resources=places), WakeAt(time=event.time + 0.75)]
        if isinstance(event, Woke):
            running = {e.job.id for e in self.seen if isinstance(e, JobStarted)}
            where = (len(self.seen) % self.resources,)
            return [Assign(job=job, resources=where) for job in sorted(running)]
        return []


@pytest.mark.parametrize("name", ["fair-share", "set-10", "greedy-com"])
@given(case=cases())
@examples(60)
def test_reallocation_while_jobs_run(name: str, case: Case) -> None:
    hooks = [Rotate(case.site) for _ in range(2)]
    policy = registry.sharing(name)
    runs = [
        simulate(case.workload, policy, site=case.site, arbitrate=hook, timeline=True)
        for simulate, hook in zip((engine.simulate, reference.simulate), hooks, strict=True)
    ]
    assert_equal(*runs)
    assert [(type(e), e.time) for e in hooks[0].seen] == [(type(e), e.time) for e in hooks[1].seen]


OPTIONS = {"search": {"budget": 20}}


def arbiter(allocator: str, placer: str, delay: float) -> Arbiter:
    return Arbiter(
        allocator=registry.policy("allocation", allocator, OPTIONS.get(allocator)),
        placer=registry.policy("placement", placer, OPTIONS.get(placer)),
        remap_delay=delay,
    )


@pytest.mark.parametrize(
    ("allocator", "placer"),
    [
        ("mckp", "exclusive"),
        ("n-sys", "greedy-clairvoyant"),
        ("random", "random"),
        ("search", "search"),
        ("size", "greedy-non-clairvoyant"),
        ("static", "greedy-clairvoyant"),
    ],
)
@given(case=cases(), delay=st.sampled_from([0.0, 0.5, 3.0]))
@examples(25)
def test_arbitration_while_jobs_run(allocator: str, placer: str, case: Case, delay: float) -> None:
    site = replace(case.site, nodes=case.site.nodes or 8, direct=True)
    workload = case.workload
    workload.curves = [curve or Curve.of({0: 1.0, 1: 1.0}) for curve in workload.curves or ()]
    workload.resources[:] = 0
    workload.resource_offsets = np.arange(len(workload) + 1)
    workload.resources = workload.resources[: len(workload)]
    policy = registry.sharing("set-10")
    arbiters = [arbiter(allocator, placer, delay) for _ in range(2)]
    runs = [
        simulate(workload, policy, site=site, arbitrate=each.handle, timeline=True)
        for simulate, each in zip((engine.simulate, reference.simulate), arbiters, strict=True)
    ]
    assert_equal(*runs)
    assert arbiters[0].moves == arbiters[1].moves
