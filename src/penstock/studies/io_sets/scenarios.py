"""The scenarios of paper io-sets, Sections VI and VIII, and ours beyond it, as data.

The paper does not print how many workloads a point stands for ("hundreds", Section V): 200 at full
size, 20 in the fast one and 3 in the quick one. It does not print the points of Figures 8 to 10
either; ours span the ranges of its text. Figures 8 to 10 keep the noise of Section VI-B1, b = 0.1,
where they vary something else: the paper calls the jobs of Figures 9 and 10 periodic, so
`figure-9-periodic` repeats Figure 9 with b = 0.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.campaign.sizes import Size
from penstock.policies.sharing.set_10 import Set10
from penstock.sim.engine import simulate
from penstock.sim.generators import io_sets as generators
from penstock.sim.generators.io_sets import Profile, three_profiles
from penstock.sim.knowledge import Knowledge
from penstock.sim.metrics import measure, measure_jobs
from penstock.sim.run import Run
from penstock.sim.workload import Workload
from penstock.studies.io_sets import practice
from penstock.studies.study import published
from penstock.studies.table import Floats, row

Seed = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A policy, its options, and what it knows of jobs at a point of the scenario."""

    policy: str
    label: str = ""
    """What rows and figures call it; else the policy."""
    knowledge: Callable[[float], str] = lambda _: "exact"
    options: Callable[[float], Mapping[str, float]] = lambda _: {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Workloads over one parameter x, met by several policies.

    A `paired` scenario draws the same random numbers at every point, so that a change from point
    to point is the parameter's doing; otherwise all points are independent.
    """

    draw: Callable[[float, Seed], Workload]
    full: Sequence[float]
    fast: Sequence[float]
    contenders: Sequence[Contender]
    workloads: Mapping[Size, int]
    paired: bool = False
    drawn_as: str = ""
    """The scenario whose random numbers it draws, so that both have the same jobs."""
    window: tuple[float, float] | None = None

    def points(self, size: Size) -> Sequence[float]:
        """Return the points of a size."""
        return self.full if size == "full" else self.fast


EQUAL_RATIOS = "figure-6-equal-ratios"
"""Figure 6's jobs, each with the same part of its time in I/O: which part of a result is due to
jobs that do little."""
LITTLE_IO = 0.2
"""The part of the jobs, those with the lowest I/O ratios, that IO-slowdown is shown without."""
LOADS = (0.866, 0.9, 0.93, 0.95, 1.0)
"""Effective loads that omega = 0.8 may stand for in the paper's simulator (`loads`)."""


def at_load(omega: float) -> str:
    """Return the scenario of Figure 6 at a load."""
    return f"figure-6-omega-{omega:g}"


MANY: Mapping[Size, int] = {"full": 200, "fast": 20, "quick": 3}
SOME: Mapping[Size, int] = {"full": 100, "fast": 20, "quick": 2}
ONE: Mapping[Size, int] = {"full": 1, "fast": 1, "quick": 1}
PAPER = ("fair-share", "exclusive-fcfs", "set-10")
PARTS = (*PAPER, "set-fair-share", "share-priority")
RIVALS = (*PARTS, "greedy-yield", "greedy-com", "fair-finish", "hedged-finish")
HEDGES = (0.0, 0.2)
"""The least part of what is done that a phase is taken to have left: none, as published, and the
default of our policies and of those that we have from others."""
NEED_LENGTHS = ("greedy-com", "fair-finish", "hedged-finish")
DIVIDING = ("look-ahead-greedy-yield", "best-next-event")
"""Policies of Benoit et al. that divide the bandwidth again at every event: slow to simulate."""
ERRORS = (0.0, 0.2, 0.5, 1.0)
"""Decades by which what policies are told of jobs is off, in the comparison at equal knowledge."""
FAIRNESS = (0.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
"""Values of fair-finish's option; 80 is its default."""
FAIRNESS_KNOWLEDGE: Mapping[str, Callable[[float], str]] = {
    "fairness": lambda _: "exact",
    "fairness-0.5-decades": lambda _: "noisy:0.5",
}
COLUMNS = ("utilization", "utilization_bound", "max_stretch", "io_slowdown", "efficiency")


def hedged(policy: str, hedge: float) -> str:
    """Return what rows call a policy with a hedge."""
    return f"{policy}, hedge {hedge:g}"


def _at_equal_knowledge(need_lengths: Sequence[str]) -> tuple[Contender, ...]:
    """Return the policies that are told periods or progress, and those that are told lengths."""
    every: list[tuple[str, str, Mapping[str, float]]] = [
        (name, name, {}) for name in ("set-10", "greedy-yield")
    ]
    every += [(n, hedged(n, h), {"hedge": h}) for n in need_lengths for h in HEDGES]
    return tuple(
        Contender(
            policy=name,
            label=label,
            knowledge=lambda x: f"noisy:{x:g}",
            options=lambda _, options=options: options,  # type: ignore[misc]
        )
        for name, label, options in every
    )


def _all(policies: Sequence[str]) -> tuple[Contender, ...]:
    return tuple(Contender(policy=policy) for policy in policies)


def _by_share(jobs: int, omega: float) -> Callable[[float, Seed], Workload]:
    """Return a scenario of Figure 6: a third of the jobs medium, n_H high, the others low."""

    def draw(n_high: float, seed: Seed) -> Workload:
        medium, high = jobs // 3, int(n_high)
        profiles = three_profiles(high, medium, jobs - medium - high)
        return generators.io_sets(profiles, seed=seed, omega=omega)

    return draw


def equal_ratios(workload: Workload) -> Workload:
    """Return the same jobs with equal I/O ratios of the same sum; w_iter and noise stay."""
    old, jobs = workload.alpha_io, len(workload)
    new = np.full(jobs, old.sum() / jobs)
    counts = np.diff(workload.offsets)
    return Workload(
        compute=workload.compute * np.repeat((1 - new) / (1 - old), counts),
        io=workload.io * np.repeat(new / old, counts),
        offsets=workload.offsets,
        release=workload.release,
        profile=workload.profile,
        horizon=workload.horizon,
    )


def _balanced(
    *, noise: float = 0.1, omega: float = 0.8, spread: float = 0.1, seed: Seed
) -> Workload:
    profiles = three_profiles(20, 20, 20, spread=spread)
    return generators.io_sets(profiles, seed=seed, omega=omega, noise=noise)


def _three_mixes(seed: Seed) -> Workload:
    """Return a workload with no, half or all of the jobs beside the medium ones of high frequency.

    Workloads of one cell after the other take turns.
    """
    n_high = (0, 20, 40)[seed[-1] % 3]
    return generators.io_sets(three_profiles(n_high, 20, 40 - n_high), seed=seed)


def _figure_10(mean: float, seed: Seed) -> Workload:
    fourth = Profile(count=15, mean=mean, sd=0.1 * mean)
    return generators.io_sets([*three_profiles(15, 15, 15), fourth], seed=seed)


def _steps(start: float, stop: float, count: int) -> tuple[float, ...]:
    return tuple(round(float(x), 6) for x in np.linspace(start, stop, count))


SCENARIOS: Mapping[str, Scenario] = {
    "figure-4": Scenario(
        draw=lambda x, _: practice.sixteen_jobs(int(x)),
        full=range(17),
        fast=range(17),
        contenders=_all(PAPER),
        workloads=ONE,
        window=practice.WINDOW,
    ),
    "figure-6": Scenario(
        draw=_by_share(60, 0.8),
        full=range(41),
        fast=range(0, 41, 5),
        contenders=_all(PARTS),
        workloads=MANY,
    ),
    "figure-6-omega-0.2": Scenario(
        draw=_by_share(60, 0.2),
        full=range(41),
        fast=range(0, 41, 10),
        contenders=_all(PARTS),
        workloads=MANY,
    ),
    **{
        at_load(omega): Scenario(
            draw=_by_share(60, omega),
            full=range(0, 41, 5),
            fast=range(0, 41, 5),
            contenders=_all(("fair-share", "set-10")),
            workloads=SOME,
            drawn_as="figure-6",
        )
        for omega in LOADS
    },
    EQUAL_RATIOS: Scenario(
        draw=lambda x, seed: equal_ratios(_by_share(60, 0.8)(x, seed)),
        full=range(0, 41, 5),
        fast=range(0, 41, 5),
        contenders=_all(("fair-share", "set-10")),
        workloads=SOME,
        drawn_as="figure-6",
    ),
    "figure-6-n-15": Scenario(
        draw=_by_share(15, 0.8),
        full=range(11),
        fast=(0, 2, 5, 8, 10),
        contenders=_all(PARTS),
        workloads=MANY,
    ),
    "figure-8": Scenario(
        draw=lambda x, seed: _balanced(noise=x, seed=seed),
        full=(0, 0.01, 0.02, *_steps(0.05, 0.5, 10)),
        fast=(0, 0.02, 0.05, 0.1, 0.3, 0.5),
        contenders=_all(PARTS),
        workloads=MANY,
        paired=True,
    ),
    "figure-9": Scenario(
        draw=lambda x, seed: _balanced(spread=x, seed=seed),
        full=_steps(0.05, 1, 20),
        fast=(0.05, 0.2, 0.4, 0.6, 0.8, 1.0),
        contenders=_all(PARTS),
        workloads=MANY,
        paired=True,
    ),
    "figure-9-periodic": Scenario(
        draw=lambda x, seed: _balanced(spread=x, noise=0, seed=seed),
        full=(0.05, *_steps(0.1, 1, 10)),
        fast=(0.05, 0.4, 1.0),
        contenders=_all(PAPER),
        workloads=MANY,
        paired=True,
    ),
    "figure-10": Scenario(
        draw=_figure_10,
        full=tuple(round(5 * 10 ** (k / 8), 2) for k in range(25)),
        fast=(5, 10, 15, 30, 100, 300, 1000, 3000, 5000),
        contenders=_all((*PAPER, "clairvoyant-sets")),
        workloads=MANY,
        paired=True,
    ),
    "load": Scenario(
        draw=lambda x, seed: _balanced(omega=x, seed=seed),
        full=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.95),
        fast=(0.2, 0.6, 0.8, 0.9, 0.93),
        contenders=_all(PAPER),
        workloads=MANY,
        paired=True,
    ),
    "wrong-w-iter": Scenario(
        draw=lambda _, seed: _balanced(seed=seed),
        full=(0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2),
        fast=(0, 0.1, 0.2, 0.3, 0.5, 1, 2),
        contenders=(
            Contender(policy="fair-share"),
            Contender(policy="set-10", knowledge=lambda x: f"noisy:{x:g}"),
        ),
        workloads=MANY,
        paired=True,
    ),
    "learned-w-iter": Scenario(
        draw=lambda _, seed: _balanced(seed=seed),
        full=(0,),
        fast=(0,),
        contenders=(
            *_all(("fair-share", "set-10")),
            Contender(policy="set-10", label="set-10 learned", knowledge=lambda _: "learned"),
        ),
        workloads=MANY,
    ),
    "rivals": Scenario(
        draw=_by_share(60, 0.8),
        full=range(0, 41, 5),
        fast=(0, 20, 40),
        contenders=_all(RIVALS),
        workloads=SOME,
    ),
    "equal-knowledge": Scenario(
        draw=lambda _, seed: _three_mixes(seed),
        full=ERRORS,
        fast=ERRORS,
        contenders=_at_equal_knowledge(NEED_LENGTHS),
        workloads=SOME,
        paired=True,
    ),
    "equal-knowledge-divided": Scenario(
        draw=lambda _, seed: _three_mixes(seed),
        full=ERRORS,
        fast=(0.0, 0.5),
        contenders=_at_equal_knowledge((*NEED_LENGTHS, *DIVIDING)),
        workloads={"full": 30, "fast": 3, "quick": 1},
        paired=True,
        drawn_as="equal-knowledge",
    ),
    **{
        name: Scenario(
            draw=lambda _, seed: _three_mixes(seed),
            full=FAIRNESS,
            fast=FAIRNESS,
            contenders=(
                Contender(policy="set-10", knowledge=knowledge),
                Contender(
                    policy="fair-finish",
                    knowledge=knowledge,
                    options=lambda x: {"fairness": x},
                ),
            ),
            workloads=SOME,
            paired=True,
        )
        for name, knowledge in FAIRNESS_KNOWLEDGE.items()
    },
    "rivals-plafrim": Scenario(
        draw=lambda _, seed: generators.plafrim(60, seed=seed),
        full=(0,),
        fast=(0,),
        contenders=_all(RIVALS),
        workloads=SOME,
    ),
}


def run_cell(cell: Cell, *, seed: int) -> list[dict[str, Value]]:
    """Return a row for every policy that meets the cell's workload."""
    scenario = SCENARIOS[cell.scenario]
    point = 0 if scenario.paired else round(cell.x * 1_000_000)
    drawn_as = scenario.drawn_as or cell.scenario
    seeds = (seed, zlib.crc32(drawn_as.encode()), point, cell.workload)
    workload = scenario.draw(cell.x, seeds)
    return [_row(cell, scenario, workload, contender, seed) for contender in scenario.contenders]


def _row(
    cell: Cell, scenario: Scenario, workload: Workload, contender: Contender, seed: int
) -> dict[str, Value]:
    knows = contender.knowledge(cell.x)
    run = simulate(
        workload,
        published(contender.policy, contender.options(cell.x)),
        knowledge=Knowledge.parse(knows, seed=seed),
        marks=scenario.window or (),
    )
    metrics = measure(run, scenario.window)
    count = Counter(sets_of(workload))
    return row(
        cell,
        contender.label or contender.policy,
        knowledge=knows,
        # The bound is the paper's, of the workload: of one run it depends on the policy.
        **{name: getattr(metrics, name) for name in COLUMNS}
        | {"utilization_bound": workload.long_run_bound},
        **other_means(run, metrics.window),
        **_worst_job(run, metrics.window),
        in_step=_in_step(run, metrics.window),
        jobs_by_set=" ".join(f"{number}:{count[number]}" for number in sorted(count)),
    )


def sets_of(workload: Workload) -> list[int]:
    """Return set-10's set of every job, had it the true w_iter."""
    policy = Set10()
    return [policy.group(job) for job in workload.jobs()]


def other_means(run: Run, window: tuple[float, float]) -> dict[str, Value]:
    """Return stretch and IO-slowdown over jobs by other means, and over some of the jobs.

    `io_slowdown_little` is the printed, geometric mean of the jobs with the lowest I/O ratios,
    `io_slowdown_others` that of all others.
    """
    jobs = measure_jobs(run, window)
    counts = np.isfinite(jobs.io_slowdown)
    slowdown, ratio = jobs.io_slowdown[counts], run.workload.alpha_io[counts]
    little = ratio <= np.quantile(ratio, LITTLE_IO)
    return {
        "mean_stretch": float(np.nanmean(jobs.stretch)),
        "io_slowdown_sums": float(jobs.in_io.sum() / jobs.isolated_io.sum()),
        "io_slowdown_median": float(np.median(slowdown)),
        "io_slowdown_little": _geometric(slowdown[little]),
        "io_slowdown_others": _geometric(slowdown[~little]),
    }


def _geometric(values: Floats) -> float | None:
    return float(np.exp(np.log(values).mean())) if len(values) else None


def _worst_job(run: Run, window: tuple[float, float]) -> dict[str, Value]:
    """Return the w_iter of the job with the maximal stretch, and the mean of its set."""
    worst = int(np.nanargmax(measure_jobs(run, window).stretch))
    sets = np.array(sets_of(run.workload))
    peers = run.workload.w_iter[sets == sets[worst]]
    return {
        "worst_w_iter": float(run.workload.w_iter[worst]),
        "worst_set": int(sets[worst]),
        "worst_set_w_iter": float(peers.mean()),
    }


def _in_step(run: Run, window: tuple[float, float]) -> int:
    """Return how many jobs repeat with the very period of another job of their set: a convoy.

    A job that waits in every iteration for the one before it moves at that one's pace.
    """
    offsets = run.workload.offsets
    periods: Counter[tuple[int, float]] = Counter()
    for j, number in enumerate(sets_of(run.workload)):
        ends = run.end[offsets[j] : offsets[j + 1]]
        first, stop = np.searchsorted(ends, window)
        if stop - first > 2:
            period = float(ends[stop - 1] - ends[first]) / (stop - first - 1)
            periods[number, float(f"{period:.5g}")] += 1
    return sum(count for count in periods.values() if count > 1)
