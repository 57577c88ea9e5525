"""A packed workload runs as the schedule does that it was made of."""

import numpy as np
import pytest

from penstock import registry
from penstock.errors import InputError
from penstock.model import Site
from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs
from penstock.sim.engine import simulate
from penstock.sim.evaluate import packs
from penstock.sim.evaluate.packed_workload import packed
from penstock.sim.generators.packs import packs as draw
from penstock.sim.metrics import JobMetrics, measure, measure_jobs, worst
from penstock.sim.run import Run


def jobs_of(run: Run) -> JobMetrics:
    return measure_jobs(run, (0.0, run.makespan))


@pytest.mark.parametrize("policy", ["first-fit", "pack-partition", "backfill", "no-barriers"])
@pytest.mark.parametrize("io_nodes", [1, 2])
def test_simulated_as_the_schedule(policy: str, io_nodes: int) -> None:
    workload = draw(3.0, seed=1, jobs=25)
    site = Site(nodes=2048 * io_nodes, resources=io_nodes)
    schedule = registry.policy("packing", policy).pack(packs.known_jobs(workload, site), site)
    if policy == "no-barriers" and io_nodes == 2:
        with pytest.raises(InputError, match="a workload file holds neither"):
            packed(workload, schedule, site)
        return
    exact = packs.run_schedule(workload, schedule, ExclusiveFcfs(), site)
    written = packed(workload, schedule, site)
    run = simulate(written, ExclusiveFcfs(), site=site)
    order = [int(written.id(j)) for j in range(len(written))]
    assert np.array_equal(run.start, exact.start[order])
    assert np.array_equal(run.finish, exact.finish[order])
    if policy in ("first-fit", "pack-partition"):
        figures, measured = packs.figures(run), packs.measure(exact)
        assert worst(jobs_of(run).stretch) == pytest.approx(measured.max_stretch)
        for name in ("pack_stretch", "packs", "executing", "delayed", "idle", "overrun"):
            assert getattr(figures, name) == pytest.approx(getattr(measured, name)), name


def test_the_wait_for_earlier_packs_is_no_stretch() -> None:
    """Counted from the release, the last packs look many times worse than they were served."""
    workload, site = draw(6.0, seed=2, jobs=40), Site(nodes=2048)
    schedule = registry.policy("packing", "pack-partition").pack(
        packs.known_jobs(workload, site), site
    )
    run = simulate(packed(workload, schedule, site), ExclusiveFcfs(), site=site)
    jobs, figures = jobs_of(run), packs.figures(run)
    assert 1 < figures.pack_stretch < worst(jobs.stretch)
    assert worst(jobs.stretch) == worst(jobs.stretch_from_start) == measure(run).max_stretch
    assert worst(jobs.stretch_from_release) > 5 * worst(jobs.stretch_from_start)
