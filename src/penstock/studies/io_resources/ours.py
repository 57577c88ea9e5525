"""Claims on our search: allocation and placement together, judged by simulation."""

from collections.abc import Mapping

import numpy as np

from penstock.policies._support.trials import METRICS
from penstock.report.findings import Claim
from penstock.studies.claims import load as claims_of
from penstock.studies.io_resources.scenarios import NOISE
from penstock.studies.io_resources.terms import (
    BANDWIDTH,
    IDLE,
    NAMES,
    SLOWDOWN,
    change,
    mean,
    percent,
)
from penstock.studies.table import Estimate, Floats, Table

claim = claims_of("io-resources")

SEARCH, SEARCH_OST = "search", "search-ost"
COLUMNS: Mapping[str, str] = dict(zip(METRICS, (SLOWDOWN, IDLE, BANDWIDTH), strict=True))
APPROXIMATE = f"search, {METRICS[0]}, approximate"


def claims(table: Table) -> list[Claim]:
    """Return the claims on the search."""
    return [
        *(_at_least_as_good(table, SEARCH, metric) for metric in METRICS),
        _at_least_as_good(table, SEARCH_OST, METRICS[0]),
        _front(table),
        _noise(table),
        _approximate(table),
    ]


def searched(metric: str) -> str:
    """Return what rows call a search set to a metric."""
    return f"search, {metric}"


def pairs(table: Table, scenario: str) -> list[str]:
    """Return the papers' pairs in a scenario."""
    return [name for name in table.policies(scenario) if not name.startswith("search")]


def best_pair(table: Table, scenario: str, x: float, metric: str) -> str:
    """Return the pair with the best mean over sets at a load."""
    sign = -1 if metric.endswith(BANDWIDTH) else 1
    return min(
        pairs(table, scenario), key=lambda name: sign * mean(table, scenario, x, name, metric)
    )


def gains(table: Table, scenario: str, ours: str, metric: str) -> dict[float, Estimate]:
    """Return how much better `ours` is than the best pair of each load; above zero is better."""
    by_load = {}
    for x in table.points(scenario):
        # The best pair is chosen by means; so is what noise makes of it.
        other = best_pair(table, scenario, x, metric)
        by = change(table, scenario, metric, ours, other, loads=[x])
        by_load[x] = by if metric.endswith(BANDWIDTH) else _negative(by)
    return by_load


def _negative(estimate: Estimate) -> Estimate:
    return Estimate(value=-estimate.value, low=-estimate.high, high=-estimate.low)


def _set_by_set(table: Table, scenario: str, metric: str, column: str) -> tuple[int, int]:
    """Return in how many sets the search is worse than the best pair of that very set."""
    worse = sets = 0
    for x in table.points(scenario):
        other: Floats = np.stack(
            [table.values(scenario, x, name, column) for name in pairs(table, scenario)]
        )
        ours = table.values(scenario, x, searched(metric), column)
        best = other.max(axis=0) if column == BANDWIDTH else other.min(axis=0)
        worse += int(((ours < best) if column == BANDWIDTH else (ours > best)).sum())
        sets += len(ours)
    return worse, sets


def _at_least_as_good(table: Table, scenario: str, metric: str) -> Claim:
    column = COLUMNS[metric]
    gained = gains(table, scenario, searched(metric), column)
    worse, sets = _set_by_set(table, scenario, metric, column)
    place = " on synthetic storage targets" if scenario == SEARCH_OST else ""
    return claim(
        "ours-set-search-least",
        f"{NAMES[column]} better than the best pair of each load by "
        f"{_extent(gained)}; worse than the best pair of the same set in {worse} of {sets} sets",
        worse == 0 and all(estimate.value >= 0 for estimate in gained.values()),
        metric=metric,
        place=place,
        scenario=len(pairs(table, scenario)),
    )


def _extent(gained: Mapping[float, Estimate]) -> str:
    low = min(gained, key=lambda x: gained[x].value)
    high = max(gained, key=lambda x: gained[x].value)
    return " to ".join(f"{gained[x].value:.1%} (load {x:g})" for x in (low, high))


def _front(table: Table) -> Claim:
    sizes = [
        float(row["front_size"] or 0)
        for metric in METRICS
        for x in table.points(SEARCH)
        for row in table.rows(SEARCH, x, searched(metric))
    ]
    costs = {
        (metric, by): change(table, SEARCH, COLUMNS[metric], searched(by), searched(metric))
        for metric in METRICS
        for by in METRICS
        if metric != by
    }
    one = [
        x
        for x in table.points(SEARCH)
        if all(
            gains(table, SEARCH, searched(METRICS[0]), column)[x].value >= 0
            for column in COLUMNS.values()
        )
    ]
    return claim(
        "ours-metrics-conflict-search",
        "; ".join(
            f"set to {by}: {NAMES[COLUMNS[metric]]} {percent(estimate, 0)}"
            for (metric, by), estimate in costs.items()
        ),
        all(
            estimate.high < 0 if COLUMNS[metric] == BANDWIDTH else estimate.low > 0
            for (metric, _), estimate in costs.items()
        ),
        sizes=np.mean(sizes),
        sizes_2=max(sizes),
        metrics=METRICS[0],
        one=len(one),
        search=len(table.points(SEARCH)),
    )


def _noise(table: Table) -> Claim:
    gained = {
        metric: gains(table, SEARCH, searched(metric), f"noisy_{column}")
        for metric, column in COLUMNS.items()
    }
    lost = [
        f"{metric} at {x:g} ({percent(estimate)})"
        for metric, by_load in gained.items()
        for x, estimate in by_load.items()
        if estimate.value < 0
    ]
    return claim(
        "ours-what-search-gains",
        "against the best pair under the same noise: "
        + "; ".join(
            f"{metric} {np.mean([e.value for e in by_load.values()]):+.1%} on average, "
            f"{_extent(by_load)}"
            for metric, by_load in gained.items()
        ),
        not lost,
        noise=NOISE,
        lost="; ".join(lost),
    )


def _approximate(table: Table) -> Claim:
    gained = gains(table, SEARCH, APPROXIMATE, SLOWDOWN)
    behind = change(table, SEARCH, SLOWDOWN, APPROXIMATE, searched(METRICS[0]))
    ahead = [x for x, estimate in gained.items() if estimate.value >= 0]
    return claim(
        "ours-classes-only-where",
        f"ahead at {len(ahead)} of {len(gained)} loads, {_extent(gained)}; against search "
        f"with exact curves {percent(behind)}",
        len(ahead) == len(gained),
    )
