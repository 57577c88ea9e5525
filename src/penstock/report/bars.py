"""Bars over labels: one group or stack per label, one colour per series."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.report.findings import Bars

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#555555")
ABOVE, BELOW = "#0072B2", "#D55E00"
GROUP = 0.8
"""The part of a label's width that its bars take."""
LETTER = 0.085
"""Inches of a letter of a label, with some room."""


def draw_bars(axes: Any, panel: Bars, colours: Mapping[str, str]) -> None:
    """Draw a panel; `colours` are of series that look the same in every figure."""
    places = np.arange(len(panel.labels))
    base = np.zeros(len(places))
    width = GROUP if panel.stacked else GROUP / len(panel.series)
    for i, series in enumerate(panel.series):
        heights = np.asarray(series.y, float)
        aside = 0.0 if panel.stacked else (i - (len(panel.series) - 1) / 2) * width
        if panel.colour_by == "sign":
            colour: Any = np.where(heights >= 0, ABOVE, BELOW)
        else:
            colour = colours.get(series.label, PALETTE[i % len(PALETTE)])
        axes.bar(
            places + aside,
            heights,
            width=width * 0.94,
            bottom=base if panel.stacked else 0.0,
            color=colour,
            label=series.label,
            linewidth=0,
        )
        if len(series.low):
            axes.vlines(places + aside, series.low, series.high, color="#222222", linewidth=0.9)
        base += heights
    _finish(axes, panel)


def _finish(axes: Any, panel: Bars) -> None:
    slanted = slants(panel)
    axes.set_xticks(
        np.arange(len(panel.labels)),
        panel.labels,
        rotation=40 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor",
    )
    axes.tick_params(axis="x", length=0, pad=5 if slanted else 3)
    axes.set_xlim(-0.6, len(panel.labels) - 0.4)
    axes.grid(axis="x", visible=False)
    if panel.colour_by == "sign":
        axes.axhline(0.0, color="#9a9a9a", linewidth=0.8)
    for reference in panel.references:
        axes.axhline(reference.y, color="#6b6b6b", linewidth=0.9, linestyle=(0, (1, 2)))
        axes.annotate(
            reference.label,
            (1.0, reference.y),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            color="#6b6b6b",
            fontsize=8,
            va="center",
        )
    if panel.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(top=panel.top)
    if panel.small:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=3))
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.key:
        # The last of a stack is its top, so that the key reads as the stack does.
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(
            handles[::-1] if panel.stacked else handles,
            labels[::-1] if panel.stacked else labels,
            loc="upper left",
            bbox_to_anchor=(1.02, 1.02),
            frameon=False,
            fontsize=8,
            handlelength=1.0,
            borderaxespad=0,
        )


def slants(panel: Bars) -> bool:
    """Say whether the labels are too long to stand side by side."""
    return LETTER * max(map(len, panel.labels)) > bars_width(panel) / len(panel.labels)


def labels_below(panel: Bars) -> float:
    """Return the inches that slanted labels take below the axis, beyond a line of text."""
    return 0.55 * LETTER * max(map(len, panel.labels)) if slants(panel) else 0.0


def bars_width(panel: Bars) -> float:
    """Return the inches that the bars need."""
    each = 1.0 if panel.stacked else float(len(panel.series))
    return max(1.15 if panel.small else 2.2, len(panel.labels) * (0.1 + 0.14 * each))
