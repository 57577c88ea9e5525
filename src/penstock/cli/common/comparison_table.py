"""The tables that `compare`, `sweep` and `what-if` print: one row per policy."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.campaign.statistics import Estimate
from penstock.cli.common.output import emit_table
from penstock.core import live_knowledge
from penstock.sim.evaluate.policy_runs import HIGHER_IS_BETTER

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


def show(policies: Mapping[str, Mapping[str, Any]], title: str, starred: Iterable[str]) -> None:
    """Print ranked policies; in each column the best policy of `starred` gets a star."""
    cells = _starred(policies, COLUMNS, HIGHER_IS_BETTER, starred)
    rows: list[Sequence[str]] = []
    for name, figures in policies.items():
        gain = figures["gain"] and f"{100 * figures['gain']['utilization']:+.2f}%"
        rows.append((name, cells[name][0], gain or "-", *cells[name][1:]))
    first, *others = COLUMNS.values()
    emit_table(("policy", first, GAIN, *others), rows, title=title, drop=_dropped(COLUMNS))


def show_contest(
    policies: Mapping[str, Mapping[str, Any]],
    title: str,
    *,
    kind: str,
    higher_is_better: Mapping[str, bool],
    workloads: int,
) -> list[str]:
    """Print policies with intervals, wins, needs and whether they run live.

    Return the columns that the terminal was too narrow for.
    """
    columns = OF_KIND[kind]
    cells = _starred(policies, columns, higher_is_better, policies)
    rows: list[Sequence[str]] = []
    for name, figures in policies.items():
        gain = Estimate(value=figures["gain"], low=figures["low"], high=figures["high"])
        known = live_knowledge.in_words(kind, figures["needs"]).partition(":")[0]
        rows.append(
            (
                name,
                cells[name][0],
                show_gain(gain),
                *((f"{figures['wins']}/{workloads}",) if workloads > 1 else ()),
                *cells[name][1:],
                ", ".join(figures["needs"]) or "nothing",
                *(() if kind == "packing" else (known,)),
            )
        )
    first, *others = columns.values()
    wins = (WINS,) if workloads > 1 else ()
    live = () if kind == "packing" else (LIVE,)
    return emit_table(
        ("policy", first, GAIN, *wins, *others, NEEDS, *live),
        rows,
        title=title,
        text={NEEDS, LIVE},
        drop=(*_dropped(columns), NEEDS, LIVE, WINS),
    )


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
    starred: Iterable[str],
) -> dict[str, list[str]]:
    """Return the cells of each policy, with stars where it is the best of `starred`.

    A column in which they do not differ has no best.
    """
    starred = set(starred)
    contest = [figures for name, figures in policies.items() if name in starred]
    best = {
        metric: (max if higher_is_better[metric] else min)(f[metric] for f in contest)
        for metric in columns
    }
    differ = {m for m in columns if any(figures[m] != best[m] for figures in contest)}
    return {
        name: [
            _cell(figures[m], star=name in starred and m in differ and figures[m] == best[m])
            for m in columns
        ]
        for name, figures in policies.items()
    }


def _cell(value: float, *, star: bool) -> str:
    if math.isnan(value):
        return "- "
    return f"{show_value(value)}{'*' if star else ' '}"


def show_value(value: float) -> str:
    """Return the value of a metric as text."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"
