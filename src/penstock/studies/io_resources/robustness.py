"""Claims of Section VI-B, jobs of which only the class is known, and on interpolated counts."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from penstock.learn.curves import Scale
from penstock.model import Curve
from penstock.model.curve import Shape
from penstock.model.load import Options
from penstock.report.findings import Claim
from penstock.sim.generators.io_resources import SITE, mn4_curves
from penstock.studies.io_resources import targets
from penstock.studies.io_resources.comparisons import (
    BEST,
    HIGH,
    IDLE,
    MEASURED,
    N_SYS,
    NODES,
    SLOWDOWN,
    T_CPU,
    Sweep,
    claim,
    extent,
)
from penstock.studies.io_resources.scenarios import (
    CLAIRVOYANT,
    NON_CLAIRVOYANT,
    SCALES,
    STEEP_EXACT,
    learnt,
    pair,
)
from penstock.studies.table import Estimate, Table, below, bootstrap, each

FIGURE_12 = (
    pair(T_CPU, NON_CLAIRVOYANT),
    pair(BEST, NON_CLAIRVOYANT),
    pair(BEST, CLAIRVOYANT),
)
LIMIT = 0.04
OURS_CLASSES = next(iter(SCALES))
PEAKS = "Jobs whose curve peaks get another count than their best."


def approximate(name: str, label: str = OURS_CLASSES) -> str:
    """Return what rows call a pair that knows classes only, read in some way."""
    return f"{name}, {label}"


def claims(table: Table) -> list[Claim]:
    """Return the claims on classes of jobs, interpolated counts and storage targets."""
    nodes = Sweep(table, NODES)
    return [
        _classes(),
        *_loss(table, nodes),
        _interpolation(table, nodes),
        *targets.claims(table, nodes),
    ]


def _classes() -> Claim:
    def best(curve: Curve) -> int:
        return curve.bandwidths.index(max(curve.bandwidths))

    def wrong(scale: Scale) -> Counter[Shape]:
        approximated = learnt(mn4_curves, scale).approximate
        return Counter(c.shape() for c in mn4_curves() if best(approximated(c)) != best(c))

    shapes = Counter(curve.shape() for curve in mn4_curves())
    by_label = {label: wrong(scale) for label, scale in SCALES.items()}
    readings = {
        label: off["ascent"] == off["descent"] == 0 and off["peak"] + off["neutral"] > 0
        for label, off in by_label.items()
    }
    return claim.over(
        "vi-b-approximated-best-bandwidth",
        "; ".join(
            f"{label}: " + ", ".join(f"{s} {off[s]} of {n}" for s, n in sorted(shapes.items()))
            for label, off in by_label.items()
        ),
        readings,
    )


def _loss(table: Table, nodes: Sweep) -> Iterator[Claim]:
    def changes(name: str, label: str) -> dict[float, Estimate]:
        return nodes.changes(SLOWDOWN, approximate(name, label), name)

    for name in FIGURE_12:
        lost = {label: changes(name, label) for label in SCALES}
        idle = nodes.change(IDLE, approximate(name), name)
        readings = {
            label: all(e.value <= LIMIT for e in by_load.values())
            for label, by_load in lost.items()
        }
        steep = name.startswith(T_CPU) and not readings[OURS_CLASSES]
        yield claim.over(
            "fig-12a-classes-only-loses",
            f"{each({label: extent(e) for label, e in lost.items()}, '{}: {}', '; ')}; "
            f"Machine-IdleTime {idle:+.1%} over all loads",
            readings,
            allocator=name,
            reason=_reason(table, nodes) if steep else PEAKS,
        )
    first = nodes.loads[0]
    clairvoyant = {label: changes(FIGURE_12[2], label) for label in SCALES}
    readings = {
        label: all(e.value <= LIMIT for x, e in by_load.items() if x > first)
        and max(by_load, key=lambda x: by_load[x].value) == first
        for label, by_load in clairvoyant.items()
    }
    yield claim.over(
        "fig-12a-except-low-load",
        "; ".join(
            f"{label}: {by_load[first].value:+.1%} at {first:g}, then at most "
            f"{max(e.value for x, e in by_load.items() if x > first):+.1%}"
            for label, by_load in clairvoyant.items()
        ),
        readings,
        first=first,
        limit=100 * LIMIT,
        behind=nodes.change(SLOWDOWN, FIGURE_12[2], FIGURE_12[1], [first]),
        nearer=each(
            {
                label: nodes.change(
                    SLOWDOWN, approximate(FIGURE_12[2], label), FIGURE_12[1], [first]
                )
                for label in SCALES
            },
            "{} {:+.1%}",
        ),
    )

    whole = {
        label: {n: nodes.change(SLOWDOWN, approximate(n, label), n) for n in FIGURE_12}
        for label in SCALES
    }
    readings = {
        label: max(by_name, key=lambda name: abs(by_name[name].value)) == FIGURE_12[0]
        for label, by_name in whole.items()
    }
    yield claim.over(
        "fig-12a-three-t-cpu",
        "; ".join(f"{label}: {each(by_name, '{} {:+.1%}')}" for label, by_name in whole.items()),
        readings,
    )

    def gained(label: str, loads: Sequence[float] = HIGH) -> dict[str, Estimate]:
        ours, *rivals = (approximate(name, label) for name in FIGURE_12)
        return {rival: nodes.change(IDLE, ours, rival, loads) for rival in rivals}

    readings = {label: below(gained(label)) for label in SCALES}
    readings |= {
        f"{OURS_CLASSES}, {where}": below(gained(OURS_CLASSES, loads))
        for where, loads in list(nodes.high().items())[1:]
    }
    yield claim.over(
        "fig-12b-inaccurate-information-too",
        "; ".join(each(gained(label), "{1:+.1%} against {0}") for label in SCALES)
        + f", Machine-IdleTime at loads {HIGH[0]:g} to {HIGH[-1]:g}",
        readings,
    )


def _reason(table: Table, nodes: Sweep) -> str:
    """Say why t-cpu loses where it knows classes only, with counts from this run."""
    name, own = FIGURE_12[0], mn4_curves()
    class_curves = [learnt(mn4_curves).approximate(curve) for curve in own]
    needed, believed = (sum(map(_steep, curves)) for curves in (own, class_curves))
    at_ratio = {x: sum(_several(curve, x) for curve in own) for x in (0.5, 1, 2, 5, 90)}
    ends = nodes.loads[0], nodes.loads[-1]
    drawn = {x: table.values(NODES, x, pair(N_SYS), "several").mean() for x in ends}
    lost = nodes.changes(SLOWDOWN, approximate(name), name)
    worst = max(lost, key=lambda x: lost[x].value)
    kept = nodes.change(SLOWDOWN, approximate(name, STEEP_EXACT), name, [worst])
    return (
        f"n_sys > 1 needs an n with (b(n) - n b(1)) T_cpu > (n - 1) V. {needed} of the 189 curves "
        f"have b(n) > n b(1), which is necessary, not sufficient: n_sys > 1 for "
        f"{' / '.join(map(str, at_ratio.values()))} of them at T_cpu / T_io(1) = "
        f"{' / '.join(map(str, at_ratio))}, and for {drawn[ends[0]]:.1f} of 40 "
        f"jobs at load {ends[0]:g}, {drawn[ends[1]]:.1f} at {ends[1]:g}. Of the curves of classes "
        f"{believed} have b(n) > n b(1), so that none of these jobs is recognised: t-cpu, which "
        "begins with n-sys, begins them at one resource, and where the I/O nodes are nearly "
        f"saturated they stay there. With the exact curves of these jobs alone, the largest loss, "
        f"{lost[worst].value:+.1%} at load {worst:g}, is {kept:+.1%}."
    )


def _steep(curve: Curve) -> bool:
    """Say whether the curve has more bandwidth a resource with several than with the fewest."""
    parts = np.array(curve.bandwidths) / curve.counts
    return bool((parts > parts[0]).any())


def _several(curve: Curve, ratio: float) -> bool:
    """Say whether n_sys > 1 for a job with this compute over I/O time on one resource."""
    counts = curve.choices(SITE.resources, direct=False)
    volume = curve.bandwidth(1)
    return Options.of(curve, counts, nodes=1, compute=ratio, volume=volume).n_sys > 1


def _interpolation(table: Table, nodes: Sweep) -> Claim:
    """Hold the sets with measured counts only against the same sets with interpolated ones."""
    measured, names = Sweep(table, MEASURED), (BEST, N_SYS, T_CPU)
    loads = measured.all_loads
    estimates: dict[str, Estimate] = {}
    for name in names:
        exact = table.grid(MEASURED, pair(name), SLOWDOWN)
        between = table.grid(NODES, pair(name), SLOWDOWN, loads)[: len(exact)]
        estimates[name] = bootstrap(lambda a, b: (a / b).mean(axis=1), exact, between) - 1
    same_order = [
        sorted(names, key=lambda name: measured.mean(x, name, SLOWDOWN))
        == sorted(names, key=lambda name: nodes.mean(x, name, SLOWDOWN))
        for x in loads
    ]
    moved = [name for name, e in estimates.items() if not e.low <= 0 <= e.high]
    unmoved = [name for name, e in estimates.items() if e.low == e.high == 0]
    parts = [
        f"Not nothing: {', '.join(moved)} changes significantly." if moved else "",
        f"For {' and '.join(unmoved)} nothing changes: with straight lines between measured counts "
        "their best is always a measured one."
        if unmoved
        else "",
    ]
    return claim(
        "counts-between-the-measured-ones-giving-them-decides",
        f"with measured counts only: {each(estimates, '{} {:+.1%}')}",
        all(abs(e.value) < 0.05 for e in estimates.values()) and all(same_order),
        order=sum(same_order),
        loads=len(loads),
        moved=" ".join(filter(None, parts)),
    )
