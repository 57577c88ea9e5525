"""Jobs on resources: the fluid model of Fig. 4 and the metrics of paper io-resources, III-C."""

from typing import Any

import numpy as np
import pytest

from penstock import registry
from penstock.errors import InputError
from penstock.model import Curve, Job, Site, Snapshot
from penstock.sim.evaluate.placements import PHASES, JobSet, Outcome
from penstock.sim.generators.io_resources import SITE, io_resources

CURVE = Curve.of({1: 10.0, 2: 20.0, 4: 15.0})


def job(name: str, serial: int, **changes: Any) -> Job:
    """Two phases of 10 s of compute and 10 s of I/O on one resource, 5 s on two."""
    known: dict[str, Any] = {
        "nodes": 2,
        "curve": CURVE,
        "volume": 200.0,
        "compute": 20.0,
        "w_iter": 20.0,
    }
    return Job(id=name, serial=serial, **(known | changes))


def run(jobs: list[Job], places: list[tuple[int, ...]], resources: int = 4) -> Outcome:
    site = Site(resources=resources, nodes=8)
    return JobSet(jobs, site).simulate(places, occupancy=True)


def test_a_job_alone_is_slowed_by_its_count_alone() -> None:
    """rho = rho_io = b(n_perf) / b(n)."""
    for places, cost in (((0,), 2.0), ((0, 1), 1.0), ((0, 1, 2, 3), 20 / 15)):
        outcome = run([job("a", 0)], [places])
        assert outcome.slowdown.tolist() == pytest.approx([cost])
        assert outcome.slowdown_io.tolist() == pytest.approx([cost])
        assert outcome.slowdown_congestion == pytest.approx(0, abs=1e-12)


def test_metrics_by_hand() -> None:
    """Both compute until 10 and share resource 0 until each has moved 100 of 200: at 30."""
    outcome = run([job("a", 0), job("b", 1, nodes=6)], [(0,), (0,)])
    assert outcome.horizon == pytest.approx(60)
    assert outcome.slowdown.tolist() == pytest.approx([4.0, 4.0])
    assert outcome.slowdown_congestion.tolist() == pytest.approx([2.0, 2.0])
    assert outcome.idle_time == pytest.approx((40 * 2 + 40 * 6) / (60 * 8))
    assert outcome.bandwidth == pytest.approx(5.0 + 5.0)
    assert outcome.occupancy is not None
    assert outcome.occupancy.tolist() == pytest.approx([40 / 60, 0, 0, 0])
    assert outcome.spread == pytest.approx(40 / 60)


def test_transfers_are_independent_and_a_phase_ends_with_its_last() -> None:
    """Fig. 4: slowed on one of two resources, the other transfer is not, but the phase is.

    a moves 5 s on each of 0 and 1, b 10 s on 0: from 10 to 20 they share 0, a ends at 20; its
    transfer on 1 ended at 15.
    """
    outcome = run([job("a", 0), job("b", 1)], [(0, 1), (0,)])
    several = JobSet([job("a", 0), job("b", 1)], Site(resources=4))
    workload = several.workload([[(0, 1), (0,)]], several.phases[None])
    assert workload.io.tolist() == [5.0, 5.0, 10.0, 10.0]
    # Its second phase begins at 30, when b (10 s, of which 5 were done by 20) computes since 25.
    assert outcome.horizon == pytest.approx(35)
    assert outcome.slowdown[0] == pytest.approx((10 + 5) / (5 + 5))
    assert outcome.occupancy is not None
    assert outcome.occupancy.tolist() == pytest.approx([(15 + 5) / 35, 10 / 35, 0, 0])


def test_no_job_ends_in_the_interval_and_each_completes_a_phase() -> None:
    """a ends its two phases at 30; b's first lasts until 110, so a goes on until then."""
    slow = job("b", 1, volume=1000.0, compute=20.0, w_iter=120.0)
    outcome = run([job("a", 0), slow], [(0, 1), (2,)])
    assert outcome.extended
    assert outcome.horizon == pytest.approx(120)
    # a's period is 15 s: 8 phases end by 120, all alike.
    assert outcome.slowdown.tolist() == pytest.approx([1.0, 2.0])
    assert outcome.idle_time == pytest.approx((8 * 5 * 2 + 100 * 2) / (120 * 8))
    assert not run([job("a", 0), job("b", 1)], [(0, 1), (2,)]).extended


def test_a_set_keeps_the_rules_whatever_the_placement() -> None:
    jobs = io_resources(0.8, seed=5)
    view, several = Snapshot.of(jobs, SITE), JobSet(jobs, SITE)
    for allocator in ("best-bandwidth", "n-sys", "static", "random"):
        counts = registry.policy("allocation", allocator).allocate(view)
        for placer in ("random", "greedy-non-clairvoyant", "greedy-clairvoyant"):
            places = several.places(registry.policy("placement", placer).place(view, counts))
            outcome = several.simulate(places, occupancy=True)
            assert outcome.counts.tolist() == [counts[job.id] for job in jobs]
            assert (outcome.slowdown_congestion > -1e-9).all()
            assert outcome.slowdown_io.min() >= 1
            assert outcome.occupancy is not None
            assert 0 <= outcome.occupancy.min() <= outcome.occupancy.max() <= 1 + 1e-9
            assert 0 < outcome.idle_time < 1
            # Bandwidth by its definition: peak over slowdown, summed.
            assert outcome.bandwidth == pytest.approx((several.peak / outcome.slowdown).sum())
            assert several.simulate(places).mean_slowdown == outcome.mean_slowdown


def test_placements_beside_each_other_do_not_meet() -> None:
    """One call for many is the same, to the last bit, as a call for each."""
    jobs = io_resources(0.8, seed=6)
    view, several = Snapshot.of(jobs, SITE), JobSet(jobs, SITE)
    candidates = []
    for allocator in ("best-bandwidth", "n-sys", "mckp"):
        options = {"shared": True} if allocator == "mckp" else {}
        counts = registry.policy("allocation", allocator, options).allocate(view)
        placer = "exclusive" if allocator == "mckp" else "random"
        candidates.append(several.places(registry.policy("placement", placer).place(view, counts)))
    together = several.simulate_all(candidates, occupancy=True)
    assert {outcome.extended for outcome in together} == {False, True}
    for places, outcome in zip(candidates, together, strict=True):
        alone = several.simulate(places, occupancy=True)
        assert outcome.slowdown.tolist() == alone.slowdown.tolist()
        assert outcome.occupancy == pytest.approx(alone.occupancy)
        assert outcome.horizon == alone.horizon
        assert (outcome.idle_time, outcome.bandwidth) == (alone.idle_time, alone.bandwidth)


def test_phases_follow_from_w_iter() -> None:
    several = JobSet([job("a", 0), job("b", 1, w_iter=None), job("c", 2, w_iter=1e9)], SITE)
    assert several.phases.tolist() == [2, PHASES, 1]


def test_noise_varies_phases_and_more_phases_change_none() -> None:
    several = JobSet([job("a", 0)], SITE, noise=0.2, seed=7)
    two, four = (several.workload([[(0,)]], np.array([[n]])) for n in (2, 4))
    assert two.io.tolist() == four.io[:2].tolist()
    assert len(set(four.io.tolist())) == 4
    assert ((four.io >= 8) & (four.io <= 12)).all()
    assert ((four.compute >= 8) & (four.compute <= 12)).all()


def test_jobs_that_begin_apart_have_part_of_their_first_compute_phase_behind_them() -> None:
    """One of two jobs on one resource begins later: their transfers meet less, or not at all."""
    jobs = [job("a", 0), job("b", 1)]
    together = JobSet(jobs, Site(resources=4)).simulate([(0,), (0,)])
    outcomes = [
        JobSet(jobs, Site(resources=4), apart=True, seed=k).simulate([(0,), (0,)])
        for k in range(20)
    ]
    assert max(one.mean_slowdown for one in outcomes) < together.mean_slowdown
    first, again = (JobSet(jobs, SITE, apart=True, seed=3).simulate([(0,), (0,)]) for _ in "ab")
    assert first.mean_slowdown == again.mean_slowdown
    workload = JobSet(jobs, SITE, apart=True, seed=3).workload([[(0,), (1,)]], np.array([[3, 3]]))
    starts = workload.offsets[:-1]
    assert (workload.compute[starts] < workload.compute[starts + 1]).all()
    assert (workload.compute[starts + 1] == workload.compute[starts + 2]).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"curve": None}, "no curve"),
        ({"volume": None}, "no volume"),
        ({"volume": 0.0}, "leave out jobs without I/O"),
        ({"compute": None}, "no compute"),
        ({"curve": Curve.of({8: 5.0})}, "none of which"),
    ],
)
def test_jobs_that_cannot_be_simulated(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        JobSet([job("a", 0, **changes)], Site(resources=4))


def test_counts_that_a_curve_does_not_know() -> None:
    for places in ((), (0, 1, 2, 3, 4)):
        with pytest.raises(InputError, match="of which its curve says nothing"):
            run([job("a", 0)], [places], resources=8)
    with pytest.raises(InputError, match="at least one"):
        JobSet([], SITE)
    with pytest.raises(InputError, match="uses the resources 0 to 8, but the site has 0 to 7"):
        run([job("a", 0)], [(0, 8)], resources=8)
    with pytest.raises(InputError, match="one entry for each of 2 jobs"):
        run([job("a", 0), job("b", 1)], [(0,)])
