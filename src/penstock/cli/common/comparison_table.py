"""The tables that `compare` and `sweep` print: one row per policy."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from penstock.campaign.statistics import Estimate
from penstock.cli.common.output import emit_table
from penstock.core import live_knowledge
from penstock.sim.evaluate.gains import ROUNDING

COLUMNS: Mapping[str, str] = {
    "utilization": "utilization",
    "max_stretch": "max\nstretch",
    "io_slowdown": "IO\nslowdown",
    "efficiency": "efficiency",
    "makespan": "makespan",
}
"""Metrics that fit on a terminal; min_yield is left out: it is 1 / max_stretch."""
DIVISION_COLUMNS: Mapping[str, str] = {
    "mean_slowdown": "mean I/O-\nSlowDown",
    "max_slowdown": "max",
    "rho_io": "rho_io",
    "rho_con": "rho_con",
    "spread": "I/O-\nspread",
    "idle_time": "idle\ntime",
    "bandwidth": "bandwidth",
}
PACKING_COLUMNS: Mapping[str, str] = {
    "makespan": "makespan",
    "pack_stretch": "pack\nstretch",
    "max_stretch": "max\nstretch",
    "executing": "exec",
    "delayed": "delay",
    "idle": "idle",
    "overrun": "overrun",
}
OF_KIND = {"sharing": COLUMNS, "allocation": DIVISION_COLUMNS, "packing": PACKING_COLUMNS}
BASE = "base"
GAIN, WINS, NEEDS, LIVE = "gain", "wins", "needs to\nknow", "can run\nlive"
DROPPED_FIRST = (
    "bandwidth",
    "overrun",
    "efficiency",
    "makespan",
    "spread",
    "idle_time",
    "max_slowdown",
)
"""Metrics that a narrow terminal does without, in this order; the first column always stays."""


class Shown(NamedTuple):
    """What a reader of a table must be told."""

    dropped: list[str]
    """Columns that the terminal was too narrow for."""
    starred: bool


def show_contest(
    policies: Mapping[str, Mapping[str, Any]],
    title: str,
    *,
    kind: str,
    higher_is_better: Mapping[str, bool],
    workloads: int,
    base: str,
) -> Shown:
    """Print policies with intervals over the base, wins, needs and whether they run live."""
    columns = OF_KIND[kind]
    cells = _starred(policies, columns, higher_is_better)
    rows: list[Sequence[str]] = []
    for name, figures in policies.items():
        gain = Estimate(value=figures["gain"], low=figures["low"], high=figures["high"])
        known = live_knowledge.in_words(kind, figures["needs"]).partition(":")[0]
        wins = "" if name == base else f"{figures['wins']}/{workloads}"
        rows.append(
            (
                name,
                cells[name][0],
                BASE if name == base else show_gain(gain),
                *((wins,) if workloads > 1 else ()),
                *cells[name][1:],
                ", ".join(figures["needs"]) or "nothing",
                *(() if kind == "packing" else (known,)),
            )
        )
    first, *others = columns.values()
    live = () if kind == "packing" else (LIVE,)
    dropped = emit_table(
        ("policy", first, GAIN, *((WINS,) if workloads > 1 else ()), *others, NEEDS, *live),
        rows,
        title=title,
        text={NEEDS, LIVE},
        drop=(*_dropped(columns), NEEDS, LIVE, WINS),
    )
    shown = [k for k, head in enumerate(columns.values()) if " ".join(head.split()) not in dropped]
    starred = any(row[k].endswith("*") for row in cells.values() for k in shown)
    return Shown(dropped=dropped, starred=starred)


def show_gain(gain: Estimate) -> str:
    """Return a gain in per cent, with its interval."""
    return "-" if math.isnan(gain.value) else f"{gain:+.2%}"


def _dropped(columns: Mapping[str, str]) -> list[str]:
    """Return the headings that a narrow terminal does without, the first to go first."""
    least = [name for name in DROPPED_FIRST if name in columns]
    rest = [name for name in reversed(list(columns)) if name not in least]
    first = next(iter(columns))
    return [columns[name] for name in (*least, *rest) if name != first]


def _starred(
    policies: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, str],
    higher_is_better: Mapping[str, bool],
) -> dict[str, list[str]]:
    """Return the cells of each policy, with stars where it is the best.

    A column in which they do not differ has no best.
    """
    figures = list(policies.values())
    best = {
        metric: (max if higher_is_better[metric] else min)(f[metric] for f in figures)
        for metric in columns
    }

    def is_best(metric: str, value: float) -> bool:
        return math.isclose(value, best[metric], rel_tol=ROUNDING)

    differ = {m for m in columns if not all(is_best(m, f[m]) for f in figures)}
    return {
        name: [_cell(f[m], star=m in differ and is_best(m, f[m])) for m in columns]
        for name, f in policies.items()
    }


def _cell(value: float, *, star: bool) -> str:
    if math.isnan(value):
        return "- "
    return f"{show_value(value)}{'*' if star else ' '}"


def show_value(value: float) -> str:
    """Return the value of a metric as text."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"
