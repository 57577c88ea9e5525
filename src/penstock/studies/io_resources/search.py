"""Our search (allocation and placement together, judged by simulation): claims and figures."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np

from penstock.campaign.journal import CellId
from penstock.policies._support.local_search import METRICS
from penstock.report.findings import Claim, Cloud, Curves, Figure, Scatter, Series
from penstock.sim.evaluate.judge import DRAWS
from penstock.studies.io_resources.comparisons import (
    BANDWIDTH,
    IDLE,
    LOAD,
    NAMES,
    PAPER,
    SLOWDOWN,
    Sweep,
    claim,
    extent,
    figure,
)
from penstock.studies.io_resources.scenarios import MCKP, NOISE, PLACERS, STEPS, TRIALS, pair
from penstock.studies.panels import curves
from penstock.studies.table import Estimate, Floats, Table, curve, each

SEARCH, SEARCH_OST = "search", "search-ost"
COLUMNS: Mapping[str, str] = dict(zip(METRICS, (SLOWDOWN, IDLE, BANDWIDTH), strict=True))
APPROXIMATE = f"search, {METRICS[0]}, approximate"
LOADED = 0.5
"""From which load on the search's gain is claimed to be more than luck."""
FAR = 2.0
"""How many times the slowdown of all others a point may have before it would squeeze them."""


def claims(table: Table) -> list[Claim]:
    """Return the claims on the search."""
    return [
        *(_at_least_as_good(table, SEARCH, metric) for metric in METRICS),
        _at_least_as_good(table, SEARCH_OST, METRICS[0]),
        _front(table),
        *_uncertain(table),
    ]


def searched(metric: str) -> str:
    """Return what rows call a search set to a metric."""
    return f"search, {metric}"


def pairs(table: Table, scenario: str) -> list[str]:
    """Return the papers' pairs in a scenario."""
    return [name for name in table.policies(scenario) if not name.startswith("search")]


def gains(table: Table, scenario: str, ours: str, metric: str) -> dict[float, Estimate]:
    """Return how much better `ours` is than the best pair of each load; above zero is better.

    The best pair has the best mean over sets; noise may be what made it the best.
    """
    sweep, higher = Sweep(table, scenario), metric.endswith(BANDWIDTH)
    by_load = {}
    for x in sweep.all_loads:
        means = {name: sweep.mean(x, name, metric) for name in pairs(table, scenario)}
        best = (max if higher else min)(means, key=lambda name: means[name])
        by = sweep.change(metric, ours, best, [x])
        by_load[x] = by if higher else -by
    return by_load


def _set_by_set(table: Table, scenario: str, metric: str, column: str) -> tuple[int, int]:
    """Return in how many sets the search is worse than the best pair of that very set."""
    sign = -1 if column == BANDWIDTH else 1
    other: Floats = np.stack(
        [sign * table.grid(scenario, name, column) for name in pairs(table, scenario)]
    )
    ours = sign * table.grid(scenario, searched(metric), column)
    return int((ours > other.min(axis=0)).sum()), ours.size


def _at_least_as_good(table: Table, scenario: str, metric: str) -> Claim:
    column = COLUMNS[metric]
    gained = gains(table, scenario, searched(metric), column)
    worse, sets = _set_by_set(table, scenario, metric, column)
    return claim(
        "ours-set-search-least",
        f"{NAMES[column]} better than the best pair of each load by {extent(gained, '.1%')}; worse "
        f"than the best pair of the same set in {worse} of {sets} sets",
        all(estimate.value >= 0 for estimate in gained.values()),
        metric=metric,
        place=" on synthetic storage targets" if scenario == SEARCH_OST else "",
        apart="synthetic curves" if scenario == SEARCH_OST else "",
        lost=each({x: e for x, e in gained.items() if e.value < 0}, "{:g} ({:+.1%})"),
        elsewhere=_elsewhere(
            table, scenario, metric, [x for x, e in gained.items() if e.value < 0]
        ),
        scenario=len(pairs(table, scenario)),
    )


def _own_gains(table: Table, scenario: str, metric: str) -> dict[float, float]:
    """Return by how much a search is ahead of the best pair by its own simulations."""
    sweep, column = Sweep(table, scenario), COLUMNS[metric]
    first = table.rows(scenario, sweep.all_loads[0], searched(metric))[0]
    last = max(step for step in STEPS if first.get(f"after_{step}") is not None)
    sign = -1 if column == BANDWIDTH else 1
    return {
        x: sign * (1 - sweep.mean(x, searched(metric), f"after_{last}")) for x in sweep.all_loads
    }


def _elsewhere(table: Table, scenario: str, metric: str, loads: Sequence[float]) -> str:
    """Say what a search gains at some loads by its own simulations, and in trials."""
    own = _own_gains(table, scenario, metric)
    trial = gains(table, scenario, searched(metric), f"trial_{COLUMNS[metric]}")
    return "; ".join(f"at {x:g} {own[x]:+.1%} and {trial[x]:+.1%}" for x in loads)


def _front(table: Table) -> Claim:
    sweep = Sweep(table, SEARCH)
    sizes = [table.grid(SEARCH, searched(metric), "front_size") for metric in METRICS]
    costs = {
        (metric, by): sweep.change(COLUMNS[metric], searched(by), searched(metric))
        for metric in METRICS
        for by in METRICS
        if metric != by
    }
    ahead = [gains(table, SEARCH, searched(METRICS[0]), column) for column in COLUMNS.values()]
    return claim(
        "ours-metrics-conflict-search",
        "; ".join(
            f"set to {by}: {NAMES[COLUMNS[metric]]} {estimate:+.0%}"
            for (metric, by), estimate in costs.items()
        ),
        all(
            estimate.high < 0 if COLUMNS[metric] == BANDWIDTH else estimate.low > 0
            for (metric, _), estimate in costs.items()
        ),
        sizes=np.mean(sizes),
        sizes_2=np.max(sizes),
        metrics=METRICS[0],
        one=sum(all(by_load[x].value >= 0 for by_load in ahead) for x in sweep.all_loads),
        search=len(sweep.all_loads),
    )


def _uncertain(table: Table) -> Iterator[Claim]:
    trial = {
        metric: gains(table, SEARCH, searched(metric), f"trial_{column}")
        for metric, column in COLUMNS.items()
    }
    own = {metric: _own_gains(table, SEARCH, metric) for metric in trial}
    lost = "; ".join(
        f"{metric} at {x:g} ({estimate:+.1%}; by its own simulations {own[metric][x]:+.1%})"
        for metric, by_load in trial.items()
        for x, estimate in by_load.items()
        if estimate.value < 0
    )
    own_means = {metric: fmean(by_load.values()) for metric, by_load in own.items()}
    yield claim(
        "ours-what-search-gains",
        "against the best pair in the same trials: "
        + "; ".join(
            f"{metric} {np.mean([e.value for e in by_load.values()]):+.1%} on average, "
            f"{extent(by_load, '.1%')}"
            for metric, by_load in trial.items()
        ),
        not lost,
        noise=NOISE,
        trials=TRIALS,
        draws=DRAWS,
        lost=lost,
        own_means=each(own_means, "{} {:+.1%}"),
    )
    loaded = {
        metric: min(by_load[x].low for x in by_load if x >= LOADED)
        for metric, by_load in trial.items()
    }
    yield claim(
        "ours-what-search-gains-loaded",
        each(loaded, "{}: at least {:.1%} (the low end of the least sure interval)", "; "),
        all(low > 0 for low in loaded.values()),
        loaded=LOADED,
    )

    guessed = gains(table, SEARCH, APPROXIMATE, SLOWDOWN)
    behind = Sweep(table, SEARCH).change(SLOWDOWN, APPROXIMATE, searched(METRICS[0]))
    ahead = sum(estimate.value >= 0 for estimate in guessed.values())
    yield claim(
        "ours-classes-only-where",
        f"ahead at {ahead} of {len(guessed)} loads, {extent(guessed, '.1%')}; against search "
        f"with exact curves {behind:+.1%}",
        ahead == len(guessed),
        exact=sum(
            e.value >= 0 for e in gains(table, SEARCH, searched(METRICS[0]), SLOWDOWN).values()
        ),
        loads=len(guessed),
    )


def figures(table: Table, seconds: Mapping[CellId, float]) -> list[Figure]:
    """Return the figures of the search; `seconds` are those of each cell."""
    return [_search(table), _cost(table, seconds), _front_figure(table)]


def _better_by(metric: str) -> str:
    return f"{NAMES[COLUMNS[metric]]}, better by (%)"


def _search(table: Table) -> Figure:
    def panel(metric: str) -> Curves:
        column = COLUMNS[metric]
        series = [
            curve(label, gains(table, SEARCH, searched(metric), name), scale=100)
            for label, name in (("search", column), ("search, trial", f"trial_{column}"))
        ]
        if metric == METRICS[0]:
            guess = gains(table, SEARCH, APPROXIMATE, column)
            values = [100 * estimate.value for estimate in guess.values()]
            series.append(Series(label="classes only", x=list(guess), y=values))
        lines = {"best pair": 0.0}
        return curves(f"set to {metric}", LOAD, _better_by(metric), series, lines=lines)

    sets, count = Sweep(table, SEARCH).sets(), len(pairs(table, SEARCH))
    return figure("search", [panel(metric) for metric in METRICS], sets=sets, pairs=count)


def _cost(table: Table, seconds: Mapping[CellId, float]) -> Figure:
    sweep = Sweep(table, SEARCH)
    cells = [value for (name, _, _), value in seconds.items() if name == SEARCH]
    first = table.rows(SEARCH, sweep.all_loads[0], searched(METRICS[0]))[0]
    steps = [step for step in STEPS if f"after_{step}" in first]

    def gained(metric: str, step: int) -> float:
        sign = -1 if COLUMNS[metric] == BANDWIDTH else 1
        after = [sweep.mean(x, searched(metric), f"after_{step}") for x in sweep.all_loads]
        return 100 * sign * float(np.mean([1 - value for value in after]))

    panels = [
        curves(
            f"set to {metric}",
            "simulations",
            _better_by(metric),
            [Series(label="search", x=steps, y=[gained(metric, step) for step in steps])],
            lines={"set's best pair": 0.0},
        )
        for metric in METRICS
    ]
    most = max(table.grid(SEARCH, searched(metric), "evaluations").max() for metric in METRICS)
    # Four searches per cell, one of them with approximated curves.
    each_search = float(np.median(cells)) / (len(METRICS) + 1)
    sets = sweep.sets()
    return figure("search-cost", panels, sets=sets, evaluations=int(most), each=each_search)


def _front_figure(table: Table) -> Figure:
    def point(x: float, policy: str) -> tuple[float, float]:
        slowdown, idle = judged_pairs(table, x)[policy]
        return 100 * idle, slowdown

    def cloud(label: str, points: list[tuple[float, float]]) -> Cloud:
        return Cloud(label=label, x=[p[0] for p in points], y=[p[1] for p in points])

    panels, far = [], {}
    for x in (0.3, 0.6, 0.9):
        clouds = [
            cloud("search", [(100 * p[1], p[0]) for p in _joint_front(table, x)]),
            *(cloud(n, [point(x, pair(n, placer)) for placer in PLACERS]) for n in PAPER),
        ]
        idle, slowdown = point(x, MCKP)
        if slowdown > FAR * max(y for one in clouds for y in one.y):
            far[x] = f"{slowdown:.0f} and {idle:.0f}%"
        else:
            clouds.append(cloud("mckp", [(idle, slowdown)]))
        title, x_axis, y_axis = f"one set at load {x:g}", "Machine-IdleTime (%)", NAMES[SLOWDOWN]
        panels.append(Scatter(title=title, x=x_axis, y=y_axis, clouds=clouds, log_y=True))
    left_out = " Where mckp is far above all others it is left out: slowdown and idle time "
    left_out += each(far, "{1} at load {0:g}") + "."
    return figure("front", panels, left_out=left_out if far else "")


def judged_pairs(table: Table, x: float) -> dict[str, tuple[float, float]]:
    """Return slowdown and idle time of the papers' pairs by the search's own simulations."""
    texts = str(table.rows(SEARCH, x, searched(METRICS[0]))[0]["pairs"]).split()
    parts = (text.rsplit(":", 2) for text in texts)
    return {name.replace("_", " "): (float(mean), float(idle)) for name, mean, idle in parts}


def _joint_front(table: Table, x: float) -> list[tuple[float, ...]]:
    """Return the front of all searches on the first set of a load."""
    points = {
        tuple(float(value) for value in text.split(":"))
        for metric in METRICS
        for text in str(table.rows(SEARCH, x, searched(metric))[0]["front"]).split()
    }
    costs = {point: (point[0], point[1], -point[2]) for point in points}
    return sorted(
        point
        for point, cost in costs.items()
        if not any(
            other != cost and all(a <= b for a, b in zip(other, cost, strict=True))
            for other in costs.values()
        )
    )
