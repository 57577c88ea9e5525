"""Packs: Algorithm 1 as printed, its limits, and what goes beyond it."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from penstock import registry
from penstock.errors import InputError
from penstock.model import Curve, Job, Pack, Schedule, Site
from penstock.model.load import io_occupation, isolated_io, isolated_time

PACKERS = sorted(registry.POLICIES["packing"])


def job(serial: int, nodes: int, compute: float, io: float, **more: Any) -> Job:
    return Job(id=f"j{serial}", serial=serial, nodes=nodes, compute=compute, volume=io, **more)


def pack(policy: str, jobs: list[Job], site: Site, **options: Any) -> Schedule:
    schedule: Schedule = registry.policy("packing", policy, options).pack(jobs, site)
    return schedule


def names(schedule: Schedule) -> list[set[str]]:
    return [set(pack.jobs) for pack in schedule.packs]


some_jobs = st.lists(
    st.tuples(st.integers(0, 4), st.floats(1.0, 100.0), st.floats(0.0, 100.0)),
    min_size=1,
    max_size=15,
).map(lambda rows: [job(k, 2**q, compute, io) for k, (q, compute, io) in enumerate(rows)])
sites = st.integers(1, 4).map(lambda r: Site(nodes=16 * r, resources=r))


@given(jobs=some_jobs, site=sites)
@examples(150)
def test_first_fit_is_pack_partition_with_infinite_sensitivity(jobs: list[Job], site: Site) -> None:
    """Section 6.2.3 says so; the two are written apart."""
    for estimate in ("isolated", "io-bound"):
        fit = pack("first-fit", jobs, site, estimate=estimate)
        assert pack("pack-partition", jobs, site, sensitivity="infinite", estimate=estimate) == fit
        assert pack("pack-partition", jobs, site, sensitivity=1e9, estimate=estimate) == fit


@pytest.mark.parametrize("name", PACKERS)
@given(jobs=some_jobs, site=sites)
@examples(60)
def test_every_packer_packs_every_job_once(name: str, jobs: list[Job], site: Site) -> None:
    schedule = pack(name, jobs, site)
    packed = [name for pack in schedule.packs for name in pack.jobs]
    assert sorted(packed) == sorted(j.id for j in jobs)
    assert all(0 <= p.io_node < site.resources for p in schedule.packs)
    nodes = {j.id: j.nodes for j in jobs}
    for p in schedule.packs:
        assert sum(nodes[name] for name in p.jobs if name not in p.behind) <= 16
        for leader in set(p.behind.values()):
            followers = [name for name, before in p.behind.items() if before == leader]
            assert sum(nodes[name] for name in followers) <= nodes[leader]
    assert pack(name, list(reversed(jobs)), site) == schedule


@given(jobs=some_jobs, bound=st.sampled_from([0.3, 1.0, 2.0]))
@examples(150)
def test_the_io_bound_holds_in_every_pack(jobs: list[Job], bound: float) -> None:
    """L^Pack <= S (Eq. 4), but for a job alone that exceeds it by itself."""
    site = Site(nodes=16)
    by_name = {j.id: j for j in jobs}
    for name in ("pack-partition", "backfill"):
        for p in pack(name, jobs, site, sensitivity=bound).packs:
            members = [by_name[n] for n in p.jobs]
            length = max(isolated_time(j, site) for j in members)
            load = sum(isolated_io(j, site) for j in members) / length
            assert load <= bound * (1 + 1e-12) or len(members) == 1


@given(jobs=some_jobs)
@examples(150)
def test_backfilled_jobs_end_with_their_pack(jobs: list[Job]) -> None:
    """Without contention no chain outlasts the longest job, and no packs are added."""
    site = Site(nodes=16)
    time = {j.id: isolated_time(j, site) for j in jobs}
    schedule = pack("backfill", jobs, site, sensitivity="infinite")
    for p in schedule.packs:
        longest = max(time[name] for name in p.jobs if name not in p.behind)
        for name in p.jobs:
            chain, at = time[name], name
            while at in p.behind:
                at = p.behind[at]
                chain += time[at]
            assert chain <= longest * (1 + 1e-12)


def test_algorithm_1_by_hand() -> None:
    """Two jobs of half I/O fill a pack of load one; the third, small as it is, needs another."""
    jobs = [job(0, 4, 50, 50), job(1, 4, 45, 45), job(2, 1, 40, 40), job(3, 1, 30, 1)]
    schedule = pack("pack-partition", jobs, Site(nodes=16))
    assert names(schedule) == [{"j0", "j1", "j3"}, {"j2"}]
    assert names(pack("first-fit", jobs, Site(nodes=16))) == [{"j0", "j1", "j2", "j3"}]
    assert names(pack("pack-partition", jobs, Site(nodes=16), sensitivity=0.9)) == [
        {"j0", "j2"},
        {"j1", "j3"},
    ]


def test_packs_are_tried_fullest_first() -> None:
    """As printed: by falling P^Pack, so the last job goes where most nodes are taken."""
    jobs = [job(0, 9, 100, 0), job(1, 12, 90, 0), job(2, 3, 80, 0)]
    assert names(pack("first-fit", jobs, Site(nodes=16))) == [{"j0"}, {"j1", "j2"}]


def test_equation_4_takes_the_pack_as_it_is() -> None:
    """T^Pack stays the first, longest job's: 60 of I/O fit into (1 - 0.4) 100, 61 do not."""
    first = job(0, 1, 60, 40)
    assert len(pack("pack-partition", [first, job(1, 1, 10, 60)], Site(nodes=4)).packs) == 1
    assert len(pack("pack-partition", [first, job(1, 1, 10, 61)], Site(nodes=4)).packs) == 2


def test_alpha_is_equation_6() -> None:
    """P sum of I/O / sum of Q T = 16 x 90 / (4 x 100 + 8 x 80) with these two jobs."""
    jobs = [job(0, 4, 60, 40), job(1, 8, 30, 50)]
    assert io_occupation(16, [4, 8], [60, 30], [40, 50]) == pytest.approx(16 * 90 / 1040)
    alpha = registry.policy("packing", "pack-partition", {"sensitivity": "alpha"})
    by_number = {"sensitivity": 16 * 90 / 1040}
    assert alpha.pack(jobs, Site(nodes=16)) == pack(
        "pack-partition", jobs, Site(nodes=16), **by_number
    )


def test_the_longest_pack_goes_where_it_ends_first() -> None:
    """LPT of 5, 4, 3, 3 and 3 over two I/O nodes: 5 3 and 4 3 3 (footnote 5)."""
    jobs = [job(k, 8, time, 0) for k, time in enumerate((5, 4, 3, 3, 3))]
    schedule = pack("first-fit", jobs, Site(nodes=16, resources=2))
    on = {p.jobs[0]: p.io_node for p in schedule.packs}
    assert on == {"j0": 0, "j1": 1, "j2": 1, "j3": 0, "j4": 1}


def test_an_estimate_that_sees_io_balances_it() -> None:
    """Four jobs that are all I/O take four times as long together as the longest alone."""
    heavy = [job(k, 2, 0, 10.0 - k / 10) for k in range(4)]
    light = [job(4 + k, 8, 9, 0) for k in range(3)]
    site = Site(nodes=16, resources=2)

    def beside_heavy(**options: Any) -> int:
        schedule = pack("first-fit", [*heavy, *light], site, **options)
        (io_node,) = (p.io_node for p in schedule.packs if "j0" in p.jobs)
        return len(list(schedule.behind_io_node(io_node)))

    assert beside_heavy(estimate="isolated") == 2
    assert beside_heavy(estimate="io-bound") == 1


def test_small_jobs_run_behind_short_ones() -> None:
    jobs = [job(0, 8, 100, 0), job(1, 8, 40, 0), job(2, 4, 30, 0), job(3, 4, 20, 0)]
    schedule = pack("backfill", jobs, Site(nodes=16))
    assert schedule.packs == (
        Pack(io_node=0, jobs=("j0", "j1", "j2", "j3"), behind={"j2": "j1", "j3": "j2"}),
    )
    assert len(pack("pack-partition", jobs, Site(nodes=16)).packs) == 2


def test_a_dominant_share_is_of_nodes_or_of_io() -> None:
    """Half a job's time in I/O, at S = 2, is a quarter of the I/O node: 4 of 16 nodes."""
    jobs = [job(0, 1, 50, 50), job(1, 8, 50, 50)]
    assert pack("dominant-share", jobs, Site(nodes=16)).claims == {"j0": 4, "j1": 8}
    claims = pack("dominant-share", jobs, Site(nodes=16), sensitivity=0.4).claims
    assert claims == {"j0": 16, "j1": 16}


def test_time_alone_by_curve_bandwidth_or_in_seconds() -> None:
    """Eq. (1) with b the curve at one resource, else the site's bandwidth, else one."""
    curve = Curve.of({1: 4.0, 2: 8.0})
    site = Site(bandwidth=5.0)
    assert isolated_time(job(0, 1, 10, 20, curve=curve), site) == 15
    assert isolated_time(job(0, 1, 10, 20), site) == 14
    assert isolated_time(job(0, 1, 10, 20), Site()) == 30


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize(
    ("one", "site", "message"),
    [
        (job(0, 9, 1, 1), Site(nodes=16, resources=2), "'j0' needs 9 nodes, but a partition has 8"),
        (job(0, 1, 1, 1), Site(), "the site has none"),
        (job(0, 1, 1, 1), Site(nodes=16, resources=3), "do not divide into 3 partitions"),
        (Job(id="x", serial=0, volume=1.0), Site(nodes=2), "'x' has no compute"),
        (Job(id="x", serial=0, compute=1.0), Site(nodes=2), "'x' has no volume"),
        (job(0, 1, 0, 0), Site(nodes=2), "takes 0 s alone"),
        (job(0, 1, math.nan, 0), Site(nodes=2), "compute nan"),
        (job(0, 1, 1, -1.0), Site(nodes=2), "volume -1"),
        (job(0, 1, 1, 1, curve=Curve.of({2: 5.0})), Site(nodes=2), "'j0': a curve measured at"),
    ],
)
def test_bad_input(name: str, one: Job, site: Site, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pack(name, [one], site)


@pytest.mark.parametrize("value", ["two", 0, -1.0, math.nan, "1"])
def test_an_invalid_sensitivity(value: object) -> None:
    with pytest.raises(InputError, match="sensitivity"):
        registry.policy("packing", "pack-partition", {"sensitivity": value})


def test_an_unknown_estimate() -> None:
    with pytest.raises(InputError, match="isolated or io-bound"):
        registry.policy("packing", "first-fit", {"estimate": "exact"})
