"""The table that `compare` and `what-if` print: one row per policy."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.cli.common.output import emit_table
from penstock.sim.evaluate.policy_runs import HIGHER_IS_BETTER

COLUMNS: Mapping[str, str] = {
    "utilization": "utilization",
    "max_stretch": "max\nstretch",
    "io_slowdown": "IO\nslowdown",
    "efficiency": "efficiency",
    "makespan": "makespan",
}
"""Metrics that fit on a terminal; min_yield is left out: it is 1 / max_stretch."""


def show(policies: Mapping[str, Mapping[str, Any]], title: str, starred: Iterable[str]) -> None:
    """Print ranked policies; in each column the best policy of `starred` gets a star."""
    starred = set(starred)
    contest = [figures for name, figures in policies.items() if name in starred]
    best = {
        metric: (max if HIGHER_IS_BETTER[metric] else min)(f[metric] for f in contest)
        for metric in COLUMNS
    }
    rows: list[Sequence[str]] = []
    for name, figures in policies.items():
        stars = name in starred and len(contest) > 1
        cells = [_cell(figures[m], star=stars and figures[m] == best[m]) for m in COLUMNS]
        gain = figures["gain"] and f"{100 * figures['gain']['utilization']:+.2f}%"
        rows.append((name, cells[0], gain or "-", *cells[1:]))
    utilization, *others = COLUMNS.values()
    emit_table(("policy", utilization, "gain", *others), rows, title=title)


def _cell(value: float, *, star: bool) -> str:
    if math.isnan(value):
        return "- "
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"
    return f"{number}{'*' if star else ' '}"
