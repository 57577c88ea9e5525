"""The scenarios of paper packs, Section 6.2, and ours beyond it, as data.

Workloads are those of Section 6.2.2: ten for each alpha_gen in {0.5, 0.75, ..., 10}, as in the
paper; the quick size has fewer. All numbers of I/O nodes, sensitivities and packers meet the same
ones, but what was chosen with these workloads in sight is judged on others ("fresh"). Scenarios
over something else than alpha_gen take one value of it per workload, in an order that covers the
range evenly however few they are.

Rows are compared as ratios, workload by workload, with geometric means. The paper plots against
alpha as drawn, not as asked for (Section 6.2.2), so points are gathered into bins of alpha.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.campaign.sizes import QUICK, Size
from penstock.model import Job, Schedule, Site
from penstock.sim.evaluate import packs
from penstock.sim.evaluate.packs import PackedRun
from penstock.sim.generators.packs import ALPHAS, PARTITION, TWELVE, Choices, alpha
from penstock.sim.generators.packs import packs as draw
from penstock.sim.workload import Workload
from penstock.studies.study import published
from penstock.studies.table import Estimate, Floats, Table, bootstrap, row
from penstock.studies.texts import claims_of

FIRST_FIT, S_1, S_ALPHA = "first-fit", "pack-partition", "pack-partition, alpha"
LONGEST_REMAINING = "pack-partition, longest-remaining"
BACKFILL, NO_BARRIERS, DOMINANT = "backfill", "no-barriers", "dominant-share"
BALANCED = "first-fit, io-bound"
FIFO = "exclusive-fcfs"
ORDERS = (
    FIFO,
    "lowest-id",
    "longest-io",
    "shortest-io",
    "shortest-remaining",
    "longest-remaining",
    "lowest-io-ratio",
    "worst-stretch",
)
"""The eight list orders of Section 5.1; exclusive-fcfs is its FIFO."""
SHARED = ("fair-share", "greedy-yield", "greedy-com")
"""Beyond list orders: bandwidth that is shared, and transfers that are interrupted for others."""
IO_NODES = (1, 2, 3, 4, 5)
SENSITIVITIES = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
ERRORS = (1.0, 1.5, 3.0)
"""Factors by which estimates are wrong: the standard deviation of a log-normal error."""
IO_NODES_PREFIX, CHOICES, FRESH, ESTIMATES = "io-nodes", "choices", "fresh", "estimates"
MORE_JOBS, HIGHER_LOADS = "first-fit-jobs", "first-fit-loads"
"""First-fit beyond what the paper prints: more than 100 jobs, and alpha_gen above 10."""
JOB_COUNTS = (100.0, 400.0)
BEYOND_LOADS = (10.0, 15.0, 20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A way to draw workloads that differs from ours."""

    choices: Choices
    grid: Sequence[float] = ALPHAS
    printed: bool = True
    """Whether the text allows it; what it rules out is shown, and decides nothing."""


THREE_Q = Choices(sizes="geometric", size_factor=3.0)
"""Chosen after a look at the paper's figures (of 2 and 3)."""
VARIANTS: Mapping[str, Variant] = {
    "0.1 a variance": Variant(choices=Choices(deviation=0.1**0.5)),
    "I/O loads up to 2": Variant(choices=Choices(loads=(0.0, 2.0))),
    "I/O loads 0.05 to 0.95": Variant(choices=Choices(loads=(0.05, 0.95))),
    "sizes adjacent": Variant(choices=Choices(sizes="adjacent")),
    "sizes geometric": Variant(choices=Choices(sizes="geometric")),
    "exponent poisson": Variant(choices=Choices(sizes="poisson"), printed=False),
    "exponent normal": Variant(choices=Choices(sizes="normal"), printed=False),
    "geometric of 3 Q": Variant(choices=THREE_Q, printed=False),
    "12 loads, sizes geometric": Variant(choices=Choices(sizes="geometric"), grid=TWELVE),
    "12 loads, exponent poisson": Variant(
        choices=Choices(sizes="poisson"), grid=TWELVE, printed=False
    ),
    "12 loads, exponent normal": Variant(
        choices=Choices(sizes="normal"), grid=TWELVE, printed=False
    ),
    "12 loads, geometric of 3 Q": Variant(choices=THREE_Q, grid=TWELVE, printed=False),
}
"""The open choices of the generator: each by itself, and sizes together with the grid of loads.

The paper prints "variance sigma = 0.1", loads "truncated on [x, y]", and a distribution on powers
of two "of mean Q" without its name. It does not offer sizes of another mean: those of 3 Q, or those
whose exponent, not the size, is centred on log2 Q, which makes alpha a third of alpha_gen at 10.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A packer with its options and the order in which an I/O node serves requests."""

    label: str
    packer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    order: str = FIFO
    varied: str = ""
    """The option that takes the scenario's x."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Workloads over one parameter x, met by several contenders behind some I/O nodes."""

    io_nodes: int
    contenders: Sequence[Contender]
    points: Sequence[float]
    workloads: Mapping[Size, int]
    alpha_gen: Callable[[float, int], float]
    choices: Callable[[float], Choices] = lambda _: Choices()
    jobs: Callable[[float], int | None] = lambda _: None
    """How many jobs a workload has; None: 25 to 100, as the paper prints."""
    quick: Sequence[float] = ()
    """The points of the quick size, where they are fewer."""
    drawn: str = "packs"
    """Scenarios with the same name here meet the same workloads."""
    errors: bool = False
    """x is the factor by which estimates of compute time and volume are wrong."""

    def points_of(self, size: Size) -> Sequence[float]:
        """Return the points of a size."""
        return (self.quick or self.points) if size == QUICK else self.points


def _at_x(x: float, _: int) -> float:
    return x


def _of_workload(_: float, workload: int) -> float:
    return _spread(ALPHAS, workload)


def _of_variant(x: float, workload: int) -> float:
    return _spread(_variant(x).grid, workload)


def _spread(grid: Sequence[float], workload: int) -> float:
    # Steps without a divisor in common with 39 and 12: as many workloads have each value once.
    return float(grid[(16 if len(grid) == len(ALPHAS) else 5) * workload % len(grid)])


def _variant(x: float) -> Variant:
    return list(VARIANTS.values())[int(x)]


FIT = Contender(label=FIRST_FIT, packer="first-fit")
ONE = Contender(label=S_1, packer="pack-partition")
TO_ALPHA = Contender(label=S_ALPHA, packer="pack-partition", options={"sensitivity": "alpha"})
QUEUE = Contender(label=NO_BARRIERS, packer="no-barriers")
SHARE = Contender(label=DOMINANT, packer="dominant-share")
BEYOND = (Contender(label=BACKFILL, packer="backfill"), QUEUE, SHARE)
SEEING = Contender(label=BALANCED, packer="first-fit", options={"estimate": "io-bound"})
ONE_IO_NODE = Contender(label=LONGEST_REMAINING, packer="pack-partition", order="longest-remaining")


def of_order(packer: str, order: str) -> str:
    """Return the label of a packer under a list order."""
    return f"{packer}, {order}"


def _orders() -> tuple[Contender, ...]:
    return tuple(
        Contender(label=of_order(base.label, order), packer=base.packer, order=order)
        for base, orders in ((FIT, ORDERS), (ONE, (*ORDERS, *SHARED)))
        for order in orders
    )


SCENARIOS: Mapping[str, Scenario] = {
    **{
        f"{IO_NODES_PREFIX}-{r}": Scenario(
            io_nodes=r,
            contenders=(FIT, ONE, TO_ALPHA, *BEYOND, *((ONE_IO_NODE,) if r == 1 else (SEEING,))),
            points=ALPHAS,
            quick=ALPHAS[::2],
            workloads={"full": 10, "fast": 10, "quick": 1},
            alpha_gen=_at_x,
        )
        for r in IO_NODES
    },
    "orders": Scenario(
        io_nodes=1,
        contenders=_orders(),
        points=(0.5, 1.0, 2.0, 4.0, 7.0, 10.0),
        workloads={"full": 20, "fast": 4, "quick": 1},
        alpha_gen=_at_x,
    ),
    **{
        f"sensitivity-{r}": Scenario(
            io_nodes=r,
            contenders=(
                FIT,
                Contender(label=S_1, packer="pack-partition", varied="sensitivity"),
                Contender(label=DOMINANT, packer="dominant-share", varied="sensitivity"),
            ),
            points=SENSITIVITIES,
            workloads={"full": 117, "fast": 13, "quick": 3},
            alpha_gen=_of_workload,
        )
        for r in (1, 3)
    },
    **{
        f"{CHOICES}-{r}": Scenario(
            io_nodes=r,
            contenders=(FIT, ONE, TO_ALPHA),
            points=range(len(VARIANTS)),
            workloads={"full": 390, "fast": 78, "quick": 4},
            alpha_gen=_of_variant,
            choices=lambda x: _variant(x).choices,
        )
        for r in (1, 3, 5)
    },
    **{
        f"{ESTIMATES}-{r}": Scenario(
            io_nodes=r,
            contenders=(FIT, ONE, SHARE),
            points=ERRORS,
            workloads={"full": 390, "fast": 78, "quick": 4},
            alpha_gen=_of_workload,
            errors=True,
        )
        for r in (1, 3, 5)
    },
    **{
        f"{FRESH}-{r}": Scenario(
            io_nodes=r,
            contenders=(FIT, ONE, QUEUE, SHARE),
            points=(0,),
            workloads={"full": 390, "fast": 78, "quick": 13},
            alpha_gen=_of_workload,
            drawn=FRESH,
        )
        for r in IO_NODES
    },
    MORE_JOBS: Scenario(
        io_nodes=1,
        contenders=(FIT,),
        points=JOB_COUNTS,
        workloads={"full": 40, "fast": 20, "quick": 3},
        alpha_gen=lambda _, __: ALPHAS[-1],
        jobs=int,
    ),
    HIGHER_LOADS: Scenario(
        io_nodes=1,
        contenders=(FIT,),
        points=BEYOND_LOADS,
        workloads={"full": 40, "fast": 20, "quick": 3},
        alpha_gen=_at_x,
    ),
}


def run_cell(cell: Cell, *, seed: int) -> list[dict[str, Value]]:
    """Return a row for every contender that meets the cell's workload."""
    scenario = SCENARIOS[cell.scenario]
    alpha_gen = scenario.alpha_gen(cell.x, cell.workload)
    # Not the scenario's name: the same workloads behind one and behind several I/O nodes.
    key = zlib.crc32(scenario.drawn.encode())
    drawn = (seed, key, round(alpha_gen * 1000), cell.workload)
    choices, count = scenario.choices(cell.x), scenario.jobs(cell.x)
    workload = draw(alpha_gen, seed=drawn, choices=choices, jobs=count)
    site = Site(nodes=PARTITION * scenario.io_nodes, resources=scenario.io_nodes)
    jobs = packs.known_jobs(workload, site)
    if scenario.errors:
        jobs = misjudged(jobs, cell.x, seed=drawn)
    return [_row(cell, site, workload, jobs, contender) for contender in scenario.contenders]


def misjudged(jobs: Sequence[Job], factor: float, *, seed: Sequence[int]) -> list[Job]:
    """Return jobs whose compute time and volume are each off by a log-normal factor.

    A larger factor makes the same errors larger.
    """
    errors = np.random.default_rng([*seed, 1]).standard_normal((len(jobs), 2))
    wrong = np.exp(np.log(factor) * errors).tolist()
    return [
        replace(job, compute=by * (job.compute or 0.0), volume=to * (job.volume or 0.0))
        for job, (by, to) in zip(jobs, wrong, strict=True)
    ]


def _row(
    cell: Cell, site: Site, workload: Workload, jobs: Sequence[Job], contender: Contender
) -> dict[str, Value]:
    varied = {contender.varied: cell.x} if contender.varied else {}
    packer = registry.policy("packing", contender.packer, {**contender.options, **varied})
    schedule = packer.pack(jobs, site)
    run = packs.run_schedule(workload, schedule, published(contender.order), site)
    metrics = packs.measure(run)
    return row(
        cell,
        contender.label,
        alpha=alpha(workload),
        jobs=len(workload),
        bound=_lower_bound(workload, site),
        pack_bound=_largest_excess(run),
        at_once=_initial_demand(run.schedule, workload),
        used_io_nodes=len({pack.io_node for pack in run.schedule.packs}) / site.resources,
        balance=_balance(run),
        **{name: getattr(metrics, name) for name in packs.PackMetrics.__dataclass_fields__},
    )


def _lower_bound(workload: Workload, site: Site) -> float:
    """Return what no schedule undercuts: all node time, all I/O, or the longest job."""
    node_time = float((workload.nodes * workload.work).sum()) / site.nodes
    io = float(workload.io.sum()) / site.resources
    return max(node_time, io, float(workload.work.max()))


def _largest_excess(run: PackedRun) -> float | None:
    """Return the longest that a pack took of max T + sum of I/O, its bound under a list order."""
    if not run.schedule.barriers or any(pack.behind for pack in run.schedule.packs):
        return None
    io = run.workload.total(run.workload.io)
    parts = []
    for pack in run.schedule.packs:
        jobs = [int(job) for job in pack.jobs]
        took = run.finish[jobs].max() - run.start[jobs].min()
        parts.append(took / (run.workload.work[jobs].max() + io[jobs].sum()))
    return float(max(parts))


def _initial_demand(schedule: Schedule, workload: Workload) -> float:
    """Return how much of its I/O node a pack asks for as it starts, mean over packs.

    The sum of its jobs' own I/O parts. L^Pack spreads the I/O of short jobs over the pack's whole
    length; they ask for it in their own.
    """
    loads = [
        sum(workload.alpha_io[int(job)] for job in pack.jobs if job not in pack.behind)
        for pack in schedule.packs
    ]
    return float(np.mean(loads))


def _balance(run: PackedRun) -> float:
    """Return the mean end of the I/O nodes' work over the last: one where all end together."""
    ends = [0.0] * run.site.resources
    for pack in run.schedule.packs:
        last = float(run.finish[[int(job) for job in pack.jobs]].max())
        ends[pack.io_node] = max(ends[pack.io_node], last)
    return float(np.mean(ends)) / run.makespan


claim = claims_of("packs")
BASE = f"{IO_NODES_PREFIX}-1"
MAKESPAN, STRETCH, PACK_STRETCH = "makespan", "max_stretch", "pack_stretch"
EDGES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, np.inf)
FEWEST = 3
"""Workloads that a bin needs to be shown."""


def column(
    table: Table, scenario: str, policy: str, metric: str, among: Sequence[float] | None = None
) -> Floats:
    """Return a metric of all workloads of a scenario, over all points or some, in one order."""
    points = [x for x in table.points(scenario) if among is None or x in among]
    return np.concatenate([table.values(scenario, x, policy, metric) for x in points])


def ratios(table: Table, scenario: str, metric: str, over: str, under: str = FIRST_FIT) -> Floats:
    """Return a metric of one contender over another's, workload by workload."""
    one, other = (column(table, scenario, policy, metric) for policy in (over, under))
    return one / other


def geometric(values: Floats) -> Estimate:
    """Return the geometric mean, the paper's for ratios (footnote 6)."""
    return bootstrap(np.exp, np.log(values))


def mean(values: Floats) -> Estimate:
    """Return the arithmetic mean."""
    return bootstrap(lambda value: value, values)


def relative(
    table: Table, scenario: str, metric: str, over: str, under: str = FIRST_FIT
) -> Estimate:
    """Return the geometric mean of a ratio over all workloads."""
    return geometric(ratios(table, scenario, metric, over, under))


def at(table: Table, scenario: str, x: float, metric: str, over: str) -> Estimate:
    """Return the geometric mean of a ratio to first-fit's at one point."""
    one, other = (table.values(scenario, x, policy, metric) for policy in (over, FIRST_FIT))
    return geometric(one / other)


def by_load(
    alpha: Floats, values: Floats, estimate: Callable[[Floats], Estimate] = geometric
) -> dict[float, Estimate]:
    """Return one estimate per bin of alpha, at the bin's mean alpha."""
    bins = np.digitize(alpha, EDGES)
    result = {}
    for number in np.unique(bins):
        inside = bins == number
        if inside.sum() >= FEWEST:
            result[float(alpha[inside].mean())] = estimate(values[inside])
    return result


def load_of(table: Table, scenario: str) -> Floats:
    """Return alpha of all workloads of a scenario."""
    return column(table, scenario, FIRST_FIT, "alpha")
