"""What holds for every run, whatever the workload."""

from inspect import signature
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Case, cases, examples, workloads

from penstock import registry
from penstock.model import Site
from penstock.sim.engine import simulate
from penstock.sim.run import Run, Timeline
from penstock.sim.workload import Workload

POLICIES = sorted(registry.POLICIES["sharing"])
NO_HISTORY = {"fair-share", "exclusive-fcfs", "greedy-com", "greedy-yield"}
TINY = 1e-9


def timeline_of(run: Run) -> Timeline:
    assert run.timeline is not None
    return run.timeline


def total_share(timeline: Timeline, resource: int, edges: np.ndarray) -> np.ndarray:
    """Return the sum of shares on a resource between consecutive edges."""
    middle = (edges[:-1] + edges[1:]) / 2
    mine = timeline.resource == resource
    inside = (timeline.start[mine, None] <= middle) & (middle < timeline.end[mine, None])
    total: np.ndarray = (inside * timeline.share[mine, None]).sum(axis=0)
    return total


@pytest.mark.parametrize("name", POLICIES)
@given(workload=workloads(resources=2))
@examples(60)
def test_shares_sum_to_one_while_anyone_transfers(name: str, workload: Workload) -> None:
    run = simulate(workload, registry.sharing(name), site=Site(resources=2), timeline=True)
    timeline = timeline_of(run)
    edges = np.unique(np.concatenate((timeline.start, timeline.end)))
    edges = edges[np.concatenate(([True], np.diff(edges) > TINY))] if len(edges) else edges
    for resource in range(2):
        total = total_share(timeline, resource, edges)
        assert np.all((np.abs(total - 1) < TINY) | (total == 0))


@given(workload=workloads(caps=True), name=st.sampled_from(["fair-share", "set-10"]))
@examples(100)
def test_no_job_gets_more_than_its_cap_and_no_resource_more_than_one(
    workload: Workload, name: str
) -> None:
    timeline = timeline_of(simulate(workload, registry.sharing(name), timeline=True))
    assert np.all(timeline.share <= workload.max_share[timeline.job])
    edges = np.unique(np.concatenate((timeline.start, timeline.end)))
    assert np.all(total_share(timeline, 0, edges) <= 1 + TINY)


@pytest.mark.parametrize("name", ["exclusive-fcfs", "set-10", "set-fair-share", "greedy-com"])
@given(workload=workloads(resources=2))
@examples(60)
def test_never_two_jobs_of_a_group_on_a_resource(name: str, workload: Workload) -> None:
    policy = registry.sharing(name)
    timeline = timeline_of(simulate(workload, policy, site=Site(resources=2), timeline=True))
    groups = [policy.group(job) for job in workload.jobs()]
    rows = sorted(
        (groups[j], r, start, end, j)
        for j, r, start, end in zip(
            timeline.job.tolist(), timeline.resource, timeline.start, timeline.end, strict=True
        )
    )
    for before, after in pairwise(rows):
        if before[:2] == after[:2] and before[4] != after[4]:
            assert after[2] >= before[3]


@pytest.mark.parametrize("name", ["exclusive-fcfs", "set-10"])
@given(workload=workloads())
@examples(80)
def test_first_come_first_served_inside_a_group(name: str, workload: Workload) -> None:
    policy = registry.sharing(name)
    run = simulate(workload, policy)
    groups = [policy.group(job) for job in workload.jobs()]
    job = np.repeat(np.arange(len(workload)), np.diff(workload.offsets))
    for group in set(groups):
        mine = [i for i in range(workload.iterations) if groups[job[i]] == group and workload.io[i]]
        served = sorted(mine, key=lambda i: (run.request[i], job[i]))
        assert np.all(np.diff(run.end[served]) >= 0)


@pytest.mark.parametrize("name", POLICIES)
@given(case=cases())
@examples(60)
def test_work_done_equals_work_asked(name: str, case: Case) -> None:
    run = simulate(case.workload, registry.sharing(name), site=case.site, timeline=True)
    timeline = timeline_of(run)
    done = np.zeros((len(case.workload), case.site.resources))
    np.add.at(
        done,
        (timeline.job, timeline.resource),
        (timeline.end - timeline.start) * timeline.share,
    )
    demand = np.zeros_like(done)
    parts = case.workload.parts(case.site)
    for j, io in enumerate(case.workload.total(case.workload.io) * parts):
        demand[j, list(case.workload.resources_of(j))] = io
    np.testing.assert_allclose(done, demand, atol=1e-7)


@pytest.mark.parametrize("name", sorted(NO_HISTORY))
@given(case=cases(), power=st.integers(-3, 6))
@examples(60)
def test_time_scales_linearly(name: str, case: Case, power: int) -> None:
    """A factor of two changes exponents only, so this must hold to the last bit."""
    factor = 2.0**power
    workload = case.workload
    scaled = Workload(
        **{
            **{field: getattr(workload, field) for field in signature(Workload).parameters},
            "compute": workload.compute * factor,
            "io": workload.io * factor,
            "release": workload.release * factor,
        }
    )
    policy = registry.sharing(name)
    one = simulate(workload, policy, site=case.site)
    other = simulate(scaled, policy, site=case.site)
    np.testing.assert_array_equal(one.end * factor, other.end)


BY_PRESENCE = {"periodic-greedy-yield", "token-bucket"}
"""Policies to which a job counts while it only computes: by its start, or by its nodes."""


@pytest.mark.parametrize("name", sorted(set(POLICIES) - BY_PRESENCE))
@given(workload=workloads(caps=True))
@examples(60)
def test_adding_an_idle_job_changes_nothing(name: str, workload: Workload) -> None:
    assert workload.profile is not None
    idle = Workload(
        compute=np.append(workload.compute, 1000.0),
        io=np.append(workload.io, 0.0),
        offsets=np.append(workload.offsets, workload.iterations + 1),
        release=np.append(workload.release, 0.0),
        max_share=np.append(workload.max_share, 1.0),
        profile=np.append(workload.profile, 1.0),
    )
    policy = registry.sharing(name)
    plain = simulate(
        Workload(
            compute=workload.compute,
            io=workload.io,
            offsets=workload.offsets,
            release=workload.release,
            max_share=workload.max_share,
            profile=workload.profile,
        ),
        policy,
    )
    with_idle = simulate(idle, policy)
    np.testing.assert_array_equal(plain.end, with_idle.end[:-1])
