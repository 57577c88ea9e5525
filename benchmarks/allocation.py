"""How fast the exact knapsack behind mckp is, and t-cpu, as ratios measured in one run.

    python benchmarks/allocation.py

One instance of 10,000 jobs, 9 choices each and 1,000 I/O nodes for ours, OR-tools' CP-SAT and HiGHS
(through SciPy), all to proven optimality and compared by their optimum; 16 jobs with 5 choices and
128 I/O nodes; the 10,000 random sets of paper forwarding, Section 5.4, at all node counts; and
t-cpu (Algorithm 1 of paper io-resources) on 1,000 and 4,000 jobs, two per I/O node; and the
processor time of a live site's whole decision when a job starts or ends beside 1,000 others on 256
I/O nodes, 300 of them unknown. Each line ends with its bar and whether it is met; none is a test.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from penstock import registry
from penstock.campaign.cells import Cell
from penstock.core.arbiter import Arbiter
from penstock.core.explorer import EXPLORE, Explorer
from penstock.data import COUNTS, mn4_patterns
from penstock.model import Curve, Job, JobEnded, JobStarted, Site, Snapshot
from penstock.policies._support import _knapsack
from penstock.policies.allocation.t_cpu import TCpu
from penstock.sim.generators.io_resources import SITE, io_resources
from penstock.studies.forwarding_policies import sets

JOBS, MOST, IO_NODES = 10_000, 8, 1_000
SOLVER_BAR, SMALL_BAR, STUDY_BAR, GROWTH_BAR = 20.0, 50.0, 60.0, 8.0
CHOICES = MOST + 1
DECISION_BAR = 20.0
"""Milliseconds."""
CURVES = [pattern.curve() for pattern in mn4_patterns()]
ARBITERS = (
    ("where-known", "greedy-non-clairvoyant"),
    ("mckp", "exclusive"),
    ("best-bandwidth", "greedy-non-clairvoyant"),
    ("t-cpu", "greedy-non-clairvoyant"),
    ("n-sys", "greedy-clairvoyant"),
    ("t-cpu", "greedy-clairvoyant"),
)


def verdict(value: float, bar: float, *, at_most: bool = False) -> str:
    met = value <= bar if at_most else value >= bar
    return f"(bar {'<=' if at_most else '>='} {bar:g}: {'met' if met else 'NOT MET'})"


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def instance(seed: int) -> NDArray[np.float64]:
    """Bandwidths in kB/s by job (row) and count from 0 (direct) to 8: scaled MareNostrum patterns.

    Whole numbers, because CP-SAT takes no others, and so that optima can be compared exactly.
    """
    rng = np.random.default_rng(seed)
    curves = [pattern.curve() for pattern in mn4_patterns()]
    measured = np.array([curve.at(range(CHOICES)) for curve in curves])
    chosen = measured[rng.integers(len(curves), size=JOBS)] * rng.uniform(0.5, 2.0, (JOBS, 1))
    return np.rint(1000 * chosen)


def by_knapsack(values: NDArray[np.float64]) -> float:
    chosen = np.empty(len(values), np.int32)
    fits = _knapsack.solve(
        np.arange(0, values.size + 1, CHOICES),
        np.tile(np.arange(CHOICES, dtype=np.int32), len(values)),
        values.ravel(),
        IO_NODES,
        chosen,
    )
    assert fits
    assert chosen.sum() <= IO_NODES
    return float(values[np.arange(len(values)), chosen].sum())


def by_highs(values: NDArray[np.float64]) -> float:
    weights = np.tile(np.arange(CHOICES, dtype=float), len(values))
    one_each = csr_array(
        (np.ones(values.size), np.arange(values.size), np.arange(0, values.size + 1, CHOICES))
    )
    solution = milp(
        -values.ravel(),
        constraints=[
            LinearConstraint(one_each, 1, 1),
            LinearConstraint(csr_array(weights[None]), -np.inf, IO_NODES),
        ],
        integrality=np.ones(values.size),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0},
    )
    assert solution.status == 0, solution.message
    return float(-solution.fun)


def by_cp_sat(values: NDArray[np.float64]) -> float:
    model = cp_model.CpModel()
    taken = [model.new_bool_var("") for _ in range(values.size)]
    for j in range(len(values)):
        model.add_exactly_one(taken[CHOICES * j : CHOICES * (j + 1)])
    weights = list(range(CHOICES)) * len(values)
    model.add(cp_model.LinearExpr.weighted_sum(taken, weights) <= IO_NODES)
    model.maximize(cp_model.LinearExpr.weighted_sum(taken, [int(v) for v in values.ravel()]))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = len(os.sched_getaffinity(0))
    status = solver.solve(model)
    assert status == cp_model.OPTIMAL, solver.status_name(status)
    return float(solver.objective_value)


def against_solvers() -> None:
    values = instance(seed=0)
    print(f"{JOBS:,} jobs, {CHOICES} choices each, {IO_NODES:,} I/O nodes, to proven optimality")
    best = by_knapsack(values)
    ours = statistics.median(timed(lambda: by_knapsack(values)) for _ in range(9))
    print(f"  {1000 * ours:8.1f} ms penstock, the call included")
    for name, solve in (("HiGHS", by_highs), ("CP-SAT", by_cp_sat)):
        start = time.perf_counter()
        total = solve(values)
        ratio = (time.perf_counter() - start) / ours
        same = "equal optimum" if total == best else f"OTHER OPTIMUM, by {total - best:g}"
        print(f"  {ratio:8.0f} x {name}, model included, {same} {verdict(ratio, SOLVER_BAR)}")


def small(calls: int) -> None:
    chosen = np.empty(16, np.int32)
    curves = [pattern.curve() for pattern in mn4_patterns()[::12]]
    arrays = (
        np.arange(0, 16 * len(COUNTS) + 1, len(COUNTS)),
        np.tile(np.array(COUNTS, np.int32), 16),
        np.concatenate([curve.at(COUNTS) for curve in curves]),
    )

    def rounds() -> None:
        for _ in range(calls):
            _knapsack.solve(*arrays, 128, chosen)

    microseconds = 1e6 * min(timed(rounds) for _ in range(5)) / calls
    print("16 jobs, 5 choices each, 128 I/O nodes")
    print(
        f"  {microseconds:8.1f} us a call of the native module, its arrays at hand "
        f"{verdict(microseconds, SMALL_BAR, at_most=True)}"
    )


def draw_of_sets(workload: int) -> int:
    return len(sets.run_cell(Cell(scenario=sets.SCENARIO, x=0, workload=workload), seed=0))


def study() -> None:
    drawn = sets.draw(sets.SETS, (0,))
    counts = f"{len(drawn):,} sets of {sets.SIZE} patterns at 0 to {sets.MOST} I/O nodes"
    print(counts)
    programs = statistics.median(timed(lambda: sets.mckp(drawn)) for _ in range(5))
    print(f"  {programs:8.3f} s mckp alone")
    whole = timed(lambda: draw_of_sets(0))
    print(
        f"  {whole:8.1f} s all {len(sets.POLICIES)} policies and their distributions, one core "
        f"{verdict(whole, STUDY_BAR, at_most=True)}"
    )
    with ProcessPoolExecutor(2) as two:
        list(two.map(draw_of_sets, range(2)))
        both = timed(lambda: list(two.map(draw_of_sets, range(2))))
    print(f"  {both:8.1f} s two such draws on two cores")


def t_cpu() -> None:
    """Print the time for four times the jobs: 4 times where it is linear, 16 where quadratic."""
    seconds = []
    for jobs in (1_000, 4_000):
        site = replace(SITE, resources=jobs // 2, nodes=12 * jobs)
        view = Snapshot.of(io_resources(0.7, seed=0, jobs=jobs, site=site), site)
        seconds.append(min(timed(partial(TCpu().allocate, view)) for _ in range(5)))
        print(f"t-cpu, {jobs:,} jobs\n  {1000 * seconds[-1]:8.1f} ms")
    growth = seconds[1] / seconds[0]
    print(f"  {growth:8.1f} x for four times the jobs {verdict(growth, GROWTH_BAR, at_most=True)}")


def pattern_job(k: int, hints: Mapping[str, float]) -> Job:
    """Return a job with one of MareNostrum's curves, or, of ten jobs three, without any."""
    known = k % 10 < 7
    return Job(
        id=f"job.{k}",
        serial=k,
        nodes=1 + k % 64,
        executable=f"application {k % 50}",
        curve=CURVES[k % len(CURVES)] if known else None,
        volume=1e9 if known else None,
        compute=100.0 if known else None,
        hints=hints,
    )


def own_job(k: int, hints: Mapping[str, float]) -> Job:
    """Return a job with a curve at 1, 2, 4 to 256, a volume and a compute time of its own."""
    rng = np.random.default_rng(k)
    peak, scale = 2 ** rng.uniform(0.5, 8), rng.uniform(50, 150, 9)
    curve = {1 << i: scale[i] * (1 << i) / (1 + (1 << i) / peak) for i in range(9)}
    return Job(
        id=f"job.{k}",
        serial=k,
        nodes=1 + k % 64,
        executable=f"application {k % 50}",
        curve=Curve.of(curve),
        volume=rng.uniform(1e8, 1e10),
        compute=rng.uniform(1, 200),
        hints=hints,
    )


def decisions(
    made: Callable[[int, Mapping[str, float]], Job], jobs: int = 1_000, io_nodes: int = 256
) -> None:
    """Print how long the arbiter of a live site takes for a start or an end."""
    kind = (made.__doc__ or "").removeprefix("Return a job with ").rstrip(".")
    print(f"a start or an end beside {jobs:,} running jobs on {io_nodes} I/O nodes: {kind}")
    for policy, placement in ARBITERS:
        arbiter = Arbiter(
            allocator=registry.policy("allocation", policy),
            placer=registry.policy("placement", placement),
            fallback=registry.policy("allocation", "size"),
            settle=10.0,
            explorer=Explorer(),
        )
        site = Site(resources=io_nodes, nodes=64 * jobs, direct=True)
        running: dict[str, Job] = {}
        seconds = []
        for k in range(jobs + 20):
            job = made(k, {EXPLORE: 1.0})
            running[job.id] = job
            # While the site fills, only the job that starts is decided on.
            seen = running if k >= jobs else {job.id: job}
            begin = time.process_time()
            now = 20.0 * k
            view = Snapshot(site=site, jobs=seen, now=now)
            arbiter.handle(JobStarted(time=now, job=job), view)
            if k > jobs:
                seconds.append(time.process_time() - begin)
            if k >= jobs:
                ended = f"job.{k - jobs}"
                del running[ended]
                begin = time.process_time()
                arbiter.handle(JobEnded(time=now, job=ended), view)
                if k > jobs:
                    seconds.append(time.process_time() - begin)
        for name, value in (("median", statistics.median(seconds)), ("maximum", max(seconds))):
            print(
                f"  {1000 * value:8.1f} ms {name}, {policy}, {placement} "
                f"{verdict(1000 * value, DECISION_BAR, at_most=True)}"
            )


if __name__ == "__main__":
    # As the controller does: imported and loaded objects are not collected (live/controller).
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    decisions(pattern_job)
    decisions(own_job)
    t_cpu()
    small(2000)
    study()
    against_solvers()
