"""Claims of Section VI-B, Figures 11 and 12: algorithms that know a job's class only."""

from collections import Counter
from collections.abc import Mapping

from penstock.report.findings import Claim
from penstock.sim.generators.io_resources import mn4_curves
from penstock.studies.claims import load as claims_of
from penstock.studies.io_resources.scenarios import (
    CLAIRVOYANT,
    NON_CLAIRVOYANT,
    learnt,
    pair,
)
from penstock.studies.io_resources.terms import (
    BEST,
    HIGH,
    IDLE,
    N_SYS,
    NODES,
    SLOWDOWN,
    T_CPU,
    change,
    changes,
    extent,
    mean,
    percent,
    unsaturated,
)
from penstock.studies.table import Estimate, Table, bootstrap

claim = claims_of("io-resources")

MEASURED = "measured-counts"
FIGURE_12 = (
    pair(T_CPU, NON_CLAIRVOYANT),
    pair(BEST, NON_CLAIRVOYANT),
    pair(BEST, CLAIRVOYANT),
)
LIMIT = 0.04


def approximate(name: str) -> str:
    """Return what rows call a pair that knows classes only."""
    return f"{name}, approximate"


def claims(table: Table) -> list[Claim]:
    """Return the claims on robustness."""
    return [
        _classes(),
        *_loss(table),
        _most(table),
        _machine(table),
        _interpolation(table),
    ]


def _classes() -> Claim:
    shapes = Counter(curve.shape() for curve in mn4_curves())
    wrong = Counter(
        curve.shape()
        for curve in mn4_curves()
        if _best(learnt(mn4_curves).approximate(curve).bandwidths) != _best(curve.bandwidths)
    )
    return claim(
        "vi-b-approximated-best-bandwidth",
        "; ".join(
            f"{shape}: {wrong[shape]} of {number}" for shape, number in sorted(shapes.items())
        ),
        wrong["ascent"] == wrong["descent"] == 0 and wrong["peak"] + wrong["neutral"] > 0,
    )


def _best(bandwidths: tuple[float, ...]) -> int:
    return bandwidths.index(max(bandwidths))


def _steep() -> str:
    """Say how many curves more than double with twice the resources, and what becomes of them."""
    classes = learnt(mn4_curves)

    def count(curves: list[tuple[tuple[int, ...], tuple[float, ...]]]) -> int:
        return sum(
            any(b / n > values[0] / counts[0] for n, b in zip(counts, values, strict=True))
            for counts, values in curves
        )

    exact = count([(c.counts, c.bandwidths) for c in mn4_curves()])
    guessed = [classes.approximate(curve) for curve in mn4_curves()]
    believed = count([(c.counts, c.bandwidths) for c in guessed])
    return (
        f"{exact} of the 189 curves have more bandwidth a resource with several than with one, so "
        f"that n_sys > 1; approximated by their class, {believed} have. t-cpu begins with n-sys: "
        "such jobs begin, and where the I/O nodes are nearly saturated stay, at one resource"
    )


def _loss(table: Table) -> list[Claim]:
    loads = unsaturated(table, NODES)
    result = []
    for name in FIGURE_12:
        lost = changes(table, NODES, SLOWDOWN, approximate(name), name)
        idle = change(table, NODES, IDLE, approximate(name), name, loads=loads)
        within = max(estimate.value for estimate in lost.values()) <= LIMIT
        result.append(
            claim(
                "fig-12a-classes-only-loses",
                f"{extent(lost)}; Machine-IdleTime {percent(idle)} over all loads",
                within,
                allocator=name,
                within="" if within else _reason(table, name),
            )
        )
    return result


def _reason(table: Table, name: str) -> str:
    if not name.startswith(T_CPU):
        worst = changes(table, NODES, SLOWDOWN, approximate(name), name)
        beyond = {x: e for x, e in worst.items() if e.value > LIMIT}
        unsure = all(e.low <= LIMIT for e in beyond.values())
        return (
            f" Above it at {', '.join(f'{x:g} ({percent(e)})' for x, e in beyond.items())}"
            + (", within the interval." if unsure else ".")
            + " Jobs whose curve peaks get another count than their best."
        )
    less = change(table, NODES, SLOWDOWN, approximate(pair(N_SYS)), pair(N_SYS), loads=[0.3])
    return (
        f" {_steep()}. Machine-IdleTime, which t-cpu optimises and large jobs decide, hardly "
        f"changes. n-sys itself loses {percent(less, 0)} at load 0.3."
    )


def _most(table: Table) -> Claim:
    loads = unsaturated(table, NODES)
    lost = {
        name: change(table, NODES, SLOWDOWN, approximate(name), name, loads=loads)
        for name in FIGURE_12
    }
    return claim(
        "fig-12a-three-t-cpu",
        ", ".join(f"{name} {percent(estimate)}" for name, estimate in lost.items()),
        max(lost, key=lambda name: abs(lost[name].value)) == FIGURE_12[0],
    )


def _machine(table: Table) -> Claim:
    ours = approximate(FIGURE_12[0])
    rivals = [approximate(name) for name in FIGURE_12[1:]]
    gained = {rival: change(table, NODES, IDLE, ours, rival, loads=HIGH) for rival in rivals}
    return claim(
        "fig-12b-inaccurate-information-too",
        ", ".join(
            f"Machine-IdleTime {percent(estimate)} against {rival}"
            for rival, estimate in gained.items()
        )
        + f", at loads {HIGH[0]:g} to {HIGH[-1]:g}",
        all(estimate.high < 0 for estimate in gained.values()),
    )


def _interpolation(table: Table) -> Claim:
    """Hold the sets with measured counts only against the same sets with interpolated ones."""
    loads, names = table.points(MEASURED), (BEST, N_SYS, T_CPU)
    estimates: dict[str, Estimate] = {}
    for name in names:
        exact = table.grid(MEASURED, pair(name), SLOWDOWN)
        between = table.grid(NODES, pair(name), SLOWDOWN, loads)[: len(exact)]
        ratio = bootstrap(lambda a, b: (a / b).mean(axis=1), exact, between)
        estimates[name] = Estimate(value=ratio.value - 1, low=ratio.low - 1, high=ratio.high - 1)
    order = {
        x: [
            sorted(names, key=lambda name: mean(table, scenario, x, pair(name), SLOWDOWN))
            for scenario in (MEASURED, NODES)
        ]
        for x in loads
    }
    return claim(
        "counts-between-the-measured-ones-giving-them-decides",
        "with measured counts only: "
        + ", ".join(f"{name} {percent(estimate)}" for name, estimate in estimates.items()),
        all(abs(estimate.value) < 0.05 for estimate in estimates.values())
        and all(exact == between for exact, between in order.values()),
        order=sum((a == b for a, b in order.values())),
        loads=len(loads),
        moved=_moved(estimates),
    )


def _moved(estimates: Mapping[str, Estimate]) -> str:
    """Return the allocators that it still changes significantly."""
    names = [name for name, estimate in estimates.items() if not estimate.low <= 0 <= estimate.high]
    same = [name for name, estimate in estimates.items() if estimate.low == estimate.high == 0]
    parts = [
        f"Not nothing: {', '.join(names)} changes significantly." if names else "",
        f"For {' and '.join(same)} nothing changes: with straight lines between measured counts "
        "their best is always a measured one."
        if same
        else "",
    ]
    return " ".join(part for part in parts if part)
