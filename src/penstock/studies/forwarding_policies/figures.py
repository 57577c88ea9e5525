"""The figures of the study: Figures 5.2 to 5.13 of the thesis, and how STATIC may be read."""

from collections.abc import Iterable, Iterator, Sequence

from penstock.data import COUNTS
from penstock.report.findings import Bars, Figure, Series
from penstock.studies.forwarding_policies import applications, queue_claims, queues, sets
from penstock.studies.forwarding_policies.patterns import (
    BEST,
    CHOICES,
    READINGS,
    SHOWN,
    STATISTICS,
    TABLE_5_1,
    patterns_by,
)
from penstock.studies.panels import bars, curves, dots
from penstock.studies.table import Estimate, Table
from penstock.studies.texts import captions_of

figure = captions_of("forwarding-policies")

AVAILABLE = "available I/O nodes"
POOLS = (4, 8, 12, 16, 24, 32, 36, 48)
"""The numbers of I/O nodes that the bars show."""
SIMULATED = (
    f"Simulated: {queues.COMPUTE_NODES} compute and {queues.IO_NODES} I/O nodes, strict FIFO, no "
    "direct access, jobs that only do I/O. Curves measured on Grid'5000 (Bez et al., IPDPS 2021)."
)


def figures(table: Table) -> list[Figure]:
    """Return the study's figures in the thesis' order, ours last."""
    return [*_patterns(table), *_sets(table), *_applications(table), *_queues(table)]


def _spread(label: str, x: Sequence[float], ends: Iterable[Sequence[float]]) -> Series:
    """Return a middle with its lower and upper end."""
    middle, low, high = ends
    return Series(label=label, x=x, y=middle, low=low, high=high)


def _patterns(table: Table) -> Iterator[Figure]:
    """Yield Figures 5.2 and 5.3."""
    counts = [str(n) for n in COUNTS]
    panels = []
    for letter in TABLE_5_1:
        ends = (table.grid(SHOWN, letter, q, COUNTS)[0].tolist() for q in ("mean", "low", "high"))
        panels.append(bars(letter, counts, [_spread(letter, (), ends)], small=True))
    yield figure("figure-5.2", panels, columns=7)

    numbers = range(1, len(COUNTS) + 1)
    choices = {r: [patterns_by(table, CHOICES, r)[n] for n in numbers] for r in READINGS}
    best = {f"by {s}": list(patterns_by(table, BEST, s).values()) for s in STATISTICS}
    labels = [str(n) for n in numbers]
    panels = [
        bars("Choices", labels, choices, x="distinct choices", y="patterns", key=True),
        bars("Best count", counts, best, x="I/O nodes (0: direct)", y="patterns", key=True),
    ]
    yield figure("figure-5.3", panels)


def _sets(table: Table) -> Iterator[Figure]:
    """Yield Figures 5.5 and 5.6, and how STATIC may be read."""
    draws = len(table.rows(sets.MACHINE, 0, "nodes"))
    sample = (
        f"{sets.SETS:,} random sets of {sets.SIZE} of the 189 patterns, drawn {draws} times. "
        "Measured on MareNostrum 4 (Bez et al., PDSW 2020)."
    )

    def over_pools(scenario: str, policy: str, label: str, *, scale: float, start: int) -> Series:
        points = [x for x in table.points(scenario) if x >= start]
        grids = (table.grid(scenario, policy, q, points) for q in ("median", "q25", "q75"))
        return _spread(label, points, ((scale * grid.mean(axis=0)).tolist() for grid in grids))

    series = [over_pools(sets.BANDWIDTH, p, p, scale=1e-3, start=0) for p in sets.POLICIES]
    medians = [Series(label=s.label, x=s.x, y=s.y) for s in series]
    some = [s for s in series if s.label in ("mckp", "static", "zero")]
    y = "aggregate bandwidth (GB/s)"
    panels = [
        curves("Medians", AVAILABLE, y, medians, bottom=0.0),
        curves("With the middle half of the sets", AVAILABLE, y, some, bottom=0.0),
    ]
    yield figure("figure-5.5", panels, sample=sample, size=sets.SIZE)

    by_size = [
        over_pools(sets.OVER, f"mckp over {p}", p, scale=100, start=sets.SIZE) for p in sets.RIVALS
    ]
    labels = {
        "max": "static, most",
        "q95": "static, 95%",
        "median": "static",
        "q05": "static, 5%",
        "min": "static, least",
    }
    points = [x for x in table.points(sets.BANDWIDTH) if x >= sets.SIZE]
    extremes = []
    for quantile, label in labels.items():
        gains = table.grid(sets.OVER, "mckp over static", quantile, points).mean(axis=0)
        extremes.append(Series(label=label, x=points, y=(1 + gains).tolist()))
    title, y = "mckp over the policies by size", "gain in bandwidth (%)"
    times, lines = "times static's bandwidth", {"as static": 1.0}
    panels = [
        curves(title, AVAILABLE, y, by_size, bottom=0.0),
        curves("mckp over static", AVAILABLE, times, extremes, lines=lines, log_y=True),
    ]
    yield figure("figure-5.6", panels, size=sets.SIZE, sample=sample)

    def reading(rounding: str, quantile: str) -> list[float]:
        readings = (f"{machine}, {rounding}" for machine in sets.MACHINES)
        values = (table.values(sets.STATIC, sets.OPTIMAL, r, quantile) for r in readings)
        return [100 * float(value.mean()) for value in values]

    panel = bars(
        "mckp over static",
        list(sets.MACHINES),
        [_spread(r, (), (reading(r, q) for q in ("median", "q25", "q75"))) for r in sets.ROUNDINGS],
        x="compute nodes of the machine",
        y="gain in bandwidth (%)",
        lines={"the thesis": 211.38},
        key=True,
    )
    yield figure("static-readings", [panel], size=sets.OPTIMAL, sample=sample)


def _applications(table: Table) -> Iterator[Figure]:
    """Yield Figures 5.9 to 5.11."""
    yield _figure_5_9(table, "bandwidth", "a", "bandwidth of each application")
    yield _figure_5_9(table, "io_nodes", "b", "I/O nodes of each application")
    names, panels = applications.NAMES, []
    for n in (4, 8, 12, 16, 24, 32):
        best, ours = (
            applications.by_application(table, n, "mckp", what) for what in ("alone", "bandwidth")
        )
        parts = {"mckp": [100 * ours[name] / best[name] for name in names]}
        panels.append(bars(f"{n} I/O nodes", names, parts, y="of its best alone (%)"))
    yield figure("figure-5.10", panels, columns=3)

    labels = [str(n) for n in POOLS]
    gained = [applications.difference(table, n) for n in POOLS]
    heights = {name: [by_application[name] for by_application in gained] for name in names}
    panels = [
        bars(name, labels, {name: values}, x=AVAILABLE, y="MB/s", colour_by="sign")
        for name, values in heights.items()
    ]
    yield figure("figure-5.11", panels, columns=3)


def _figure_5_9(table: Table, what: str, part: str, title: str) -> Figure:
    unit = "MB/s" if what == "bandwidth" else "I/O nodes"
    top = 1.05 * max(
        sum(applications.by_application(table, n, policy, what).values())
        for n in table.points(applications.SCENARIO)
        for policy in applications.OPTIONS
    )

    def panel(
        title: str, points: Sequence[tuple[float, str]], labels: Sequence[str], x: str
    ) -> Bars:
        columns = [applications.by_application(table, n, policy, what) for n, policy in points]
        heights = {name: [column[name] for column in columns] for name in applications.NAMES}
        key = title == "mckp"
        return bars(title, labels, heights, x=x, y=unit, stacked=True, top=top, key=key)

    fixed, last = ("zero", "one", "oracle"), float(applications.MOST)
    pools = [str(n) for n in POOLS]
    panels = [panel("not arbitrated", [(last, policy) for policy in fixed], fixed, "")]
    for policy in ("static", "size", "mckp"):
        panels.append(panel(policy, [(n, policy) for n in POOLS], pools, AVAILABLE))
    return figure("figure-5.9", panels, name=f"figure-5.9{part}", part=part, title=title)


def _queues(table: Table) -> Iterator[Figure]:
    """Yield Figures 5.12 and 5.13, and what the thesis left open."""
    delay = queues.GEKKOFWD

    def sums(queue: str, delays: Sequence[float], title: str, *, key: bool = False) -> Bars:
        heights = {
            policy: [queue_claims.total(table, queue, policy, delay) for delay in delays]
            for policy in queues.OPTIONS
        }
        labels, y = [f"{delay:g} s" for delay in delays], "aggregate bandwidth (GB/s)"
        return bars(title, labels, heights, x="remap delay", y=y, key=key)

    for queue, name, title in (
        (queues.THREE, "figure-5.12", "Figure 5.12: a queue of HACC, SIM and S3D"),
        (queues.FOURTEEN, "figure-5.13", "Figure 5.13: a queue of 14 jobs"),
    ):
        heights = {p: table.values(queue, delay, p, "bandwidth").tolist() for p in queues.OPTIONS}
        panels = [
            bars("Jobs", queues.names(queues.QUEUES[queue]), heights, y="MB/s", log_y=True),
            sums(queue, [delay], "Sum", key=True),
        ]
        yield figure("queue", panels, name=name, title=title, simulated=SIMULATED, delay=delay)

    panels = [
        sums(queues.THREE, queues.DELAYS, "HACC, SIM and S3D"),
        sums(queues.FOURTEEN, queues.DELAYS, "14 jobs", key=True),
    ]
    yield figure("remap-delay", panels, simulated=SIMULATED)

    many = []
    for scenario, title in (
        (queues.ORDERS, "Orders of HACC, SIM and S3D"),
        (queues.RANDOM, "Random queues of 14 jobs"),
    ):
        estimates = {}
        for policy in ("one", "size", "mckp"):
            over = sets.spread(queue_claims.ratios(table, scenario, "bandwidth", policy, "static"))
            estimates[policy] = Estimate(value=over["median"], low=over["q05"], high=over["q95"])
        many.append(dots(title, estimates, better="higher", reference=1.0, form=".2f"))
    count = len(table.rows(queues.RANDOM, delay, "mckp"))
    yield figure("queues", many, count=count, simulated=SIMULATED, delay=delay)
