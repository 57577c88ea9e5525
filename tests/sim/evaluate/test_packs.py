"""Schedules of packs, run: the bounds of paper packs, barriers, and where node time goes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import HALVES, REALS, examples

from penstock import registry
from penstock.errors import InputError
from penstock.model import Curve, Pack, Schedule, Site
from penstock.sim.engine import simulate
from penstock.sim.evaluate import packs
from penstock.sim.workload import Workload

ORDERS = (
    "exclusive-fcfs",
    "lowest-id",
    "longest-io",
    "shortest-io",
    "shortest-remaining",
    "longest-remaining",
    "lowest-io-ratio",
    "worst-stretch",
)
PACKERS = sorted(registry.POLICIES["packing"])
FCFS = registry.sharing("exclusive-fcfs")


@st.composite
def released_together(draw: st.DrawFn, max_jobs: int = 9) -> Workload:
    seconds = draw(st.sampled_from([HALVES, REALS]))
    n = draw(st.integers(1, max_jobs))
    counts = [draw(st.integers(1, 4)) for _ in range(n)]
    offsets = np.concatenate(([0], np.cumsum(counts)))
    compute = np.array([draw(seconds) for _ in range(offsets[-1])])
    compute[offsets[:-1]] += 0.5
    return Workload(
        compute=compute,
        io=[draw(seconds) for _ in range(offsets[-1])],
        offsets=offsets,
        release=np.zeros(n),
        nodes=[2 ** draw(st.integers(0, 4)) for _ in range(n)],
    )


def periodic(*jobs: tuple[int, float, float, int]) -> Workload:
    """Make jobs of (nodes, compute, io, iterations)."""
    nodes, compute, io, counts = (np.array(column) for column in zip(*jobs, strict=True))
    return Workload(
        compute=np.repeat(compute, counts),
        io=np.repeat(io, counts),
        offsets=np.concatenate(([0], np.cumsum(counts))),
        release=np.zeros(len(jobs)),
        nodes=nodes,
    )


@given(workload=released_together())
@examples(40)
def test_a_pack_ends_within_its_longest_job_and_all_its_io(workload: Workload) -> None:
    """C_max <= max T_i + sum of I/O for one pack under every list order."""
    bound = workload.work.max() + workload.io.sum()
    schedule = Schedule(
        packs=(Pack(io_node=0, jobs=tuple(workload.id(j) for j in range(len(workload)))),)
    )
    site = Site(nodes=16 * len(workload))
    for order in ORDERS:
        run = packs.run_schedule(workload, schedule, registry.sharing(order), site)
        assert run.makespan <= bound * (1 + 1e-12)
        alone = simulate(workload, registry.sharing(order))
        np.testing.assert_array_equal(run.finish, alone.finish)
        assert run.uncontended == workload.work.max()


@pytest.mark.parametrize("packer", PACKERS)
@given(workload=released_together(), io_nodes=st.integers(1, 3))
@examples(60)
def test_where_node_time_goes(packer: str, workload: Workload, io_nodes: int) -> None:
    """No partition ever runs more than P nodes, and its free nodes over time are the idle part."""
    site = Site(nodes=16 * io_nodes, resources=io_nodes)
    run = packs.run(workload, registry.policy("packing", packer), FCFS, site)
    metrics = packs.measure(run)
    serial = {workload.id(j): j for j in range(len(workload))}
    idle = 0.0
    for io_node in range(io_nodes):
        here = [serial[job] for p in run.schedule.behind_io_node(io_node) for job in p.jobs]
        times = np.unique(np.concatenate((run.start[here], run.finish[here], [0, run.makespan])))
        middles = (times[1:] + times[:-1]) / 2
        running = (run.start[here] < middles[:, None]) & (run.finish[here] > middles[:, None])
        free = 16 - (running * workload.nodes[here]).sum(axis=1)
        assert (free >= 0).all()
        idle += float((free * np.diff(times)).sum())
    total = site.nodes * run.makespan
    assert metrics.idle * total == pytest.approx(idle, abs=1e-9 * total)
    assert metrics.executing + metrics.delayed + metrics.idle == pytest.approx(1)
    assert metrics.delayed >= -1e-12
    assert (run.stretch >= 1 - 1e-9).all()
    assert metrics.overrun >= 1 - 1e-9 or not run.schedule.barriers


@given(workload=released_together(), sensitivity=st.sampled_from([1.0, "infinite"]))
@examples(80)
def test_no_pack_starts_before_the_one_ahead_of_it_has_ended(
    workload: Workload, sensitivity: object
) -> None:
    site = Site(nodes=32, resources=2)
    for name in ("pack-partition", "backfill"):
        packer = registry.policy("packing", name, {"sensitivity": sensitivity})
        run = packs.run(workload, packer, FCFS, site)
        for io_node in range(2):
            ended = 0.0
            for p in run.schedule.behind_io_node(io_node):
                of = {job: int(job) for job in p.jobs}
                for job, leader in p.behind.items():
                    assert run.start[of[job]] == run.finish[int(leader)]
                first = [run.start[j] for job, j in of.items() if job not in p.behind]
                assert set(first) == {ended}
                ended = max(run.finish[j] for j in of.values())


@given(workload=released_together())
@examples(60)
def test_stretch_does_not_depend_on_the_number_of_io_nodes(workload: Workload) -> None:
    """Section 6.2.4: I/O nodes do not interact, so each pack fares alike wherever it runs."""
    packer = registry.policy("packing", "pack-partition")
    one, three = (
        packs.run(workload, packer, FCFS, Site(nodes=16 * r, resources=r)) for r in (1, 3)
    )
    np.testing.assert_allclose(one.stretch, three.stretch, rtol=1e-9)
    assert three.makespan <= one.makespan * (1 + 1e-12)


def test_two_jobs_that_do_nothing_but_io() -> None:
    """The second of two phases of 10 s that begin at once ends at 20: stretch 2, not 1/2."""
    workload = periodic((1, 0.0, 10.0, 1), (1, 0.0, 10.0, 1))
    run = packs.run(workload, registry.policy("packing", "first-fit"), FCFS, Site(nodes=2))
    metrics = packs.measure(run)
    assert run.stretch.tolist() == [1.0, 2.0]
    assert (metrics.max_stretch, metrics.makespan, metrics.overrun) == (2.0, 20.0, 2.0)
    assert (metrics.executing, metrics.delayed, metrics.idle) == (0.5, 0.25, 0.25)


def test_the_mean_of_the_packs_largest_stretches() -> None:
    """Footnote 4: a pack of stretches 1 and 2 and one of 1 alone give 1.5."""
    workload = periodic((1, 0.0, 10.0, 1), (1, 0.0, 10.0, 1), (2, 0.0, 5.0, 1))
    run = packs.run(workload, registry.policy("packing", "first-fit"), FCFS, Site(nodes=2))
    metrics = packs.measure(run)
    assert (metrics.packs, metrics.pack_stretch, metrics.max_stretch) == (2, 1.5, 2.0)


def test_without_barriers_jobs_start_when_there_are_nodes() -> None:
    """Packs {10, 6} and {4}: with barriers 10 + 4, without the last starts at 6."""
    workload = periodic((2, 10.0, 0.0, 1), (2, 4.0, 0.0, 1), (2, 6.0, 0.0, 1))
    site = Site(nodes=4)
    with_, without = (
        packs.run(workload, registry.policy("packing", name), FCFS, site)
        for name in ("pack-partition", "no-barriers")
    )
    assert with_.makespan == with_.uncontended == 14
    assert without.makespan == without.uncontended == 10
    assert without.start.tolist() == [0, 6, 0]


def test_claims_keep_io_apart() -> None:
    """At S = 1 two jobs that are half I/O may meet, a third waits although nodes are free."""
    workload = periodic(*[(1, 5.0, 5.0, 4)] * 3)
    packer = registry.policy("packing", "dominant-share", {"sensitivity": 1.0})
    run = packs.run(workload, packer, FCFS, Site(nodes=8))
    assert sorted(run.start)[:2] == [0, 0]
    assert max(run.start) == min(run.finish)


def test_volumes_behind_a_bandwidth_are_the_same_seconds() -> None:
    workload = periodic((1, 5.0, 5.0, 4), (2, 9.0, 1.0, 3))
    plain, fast = Site(nodes=2), Site(nodes=2, bandwidth=4.0)
    packer = registry.policy("packing", "pack-partition")
    schedules = [packer.pack(packs.known_jobs(workload, s), s) for s in (plain, fast)]
    assert schedules[0] == schedules[1]
    assert packs.known_jobs(workload, fast)[0].volume == 80


def test_curves_say_how_long_io_takes_behind_one_io_node() -> None:
    """10 s on two resources at 4 a second are 20 s on one at 2."""
    workload = Workload(
        compute=[5.0],
        io=[10.0],
        offsets=[0, 1],
        release=[0.0],
        resource_offsets=[0, 2],
        resources=[0, 1],
        curves=[Curve.of({1: 2.0, 2: 4.0})],
    )
    assert packs.known_jobs(workload)[0].volume == 20
    run = packs.run(workload, registry.policy("packing", "first-fit"), FCFS, Site(nodes=1))
    assert (run.makespan, run.stretch.tolist()) == (25, [1.0])


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (Schedule(packs=(Pack(io_node=0, jobs=("0",)),)), "in exactly one pack"),
        (Schedule(packs=(Pack(io_node=0, jobs=("0", "1", "1")),)), "in exactly one pack"),
        (Schedule(packs=(Pack(io_node=1, jobs=("0", "1")),)), "behind I/O node 1"),
        (
            Schedule(packs=(Pack(io_node=0, jobs=("0", "1"), behind={"1": "0"}),), barriers=False),
            "without barriers",
        ),
        (Schedule(packs=(Pack(io_node=0, jobs=("0", "1")),), claims={"0": 2}), "claim nothing"),
    ],
)
def test_schedules_that_cannot_be_run(schedule: Schedule, message: str) -> None:
    workload = periodic((1, 1.0, 1.0, 1), (1, 1.0, 1.0, 1))
    with pytest.raises(InputError, match=message):
        packs.run_schedule(workload, schedule, FCFS, Site(nodes=2))


@pytest.mark.parametrize(
    ("pack", "message"),
    [
        (Pack(io_node=0, jobs=("0", "1", "2")), "uses 20 nodes of a partition of 16"),
        (Pack(io_node=0, jobs=("0", "1", "2"), behind={"2": "ghost"}), "behind 'ghost', which is"),
        (
            Pack(io_node=0, jobs=("0", "1", "2"), behind={"0": "2"}),
            "'2', which frees only 4",
        ),
    ],
)
def test_a_pack_that_does_not_fit_is_refused(pack: Pack, message: str) -> None:
    """Equation (5), and jobs only on nodes that others free."""
    workload = periodic((8, 1.0, 1.0, 1), (8, 1.0, 1.0, 1), (4, 1.0, 1.0, 1))
    with pytest.raises(InputError, match=message):
        packs.run_schedule(workload, Schedule(packs=(pack,)), FCFS, Site(nodes=16))
