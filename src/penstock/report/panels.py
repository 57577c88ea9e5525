"""How bars, heat maps and the lanes of jobs are drawn."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from penstock.report.findings import Bars, HeatMap, Lanes
from penstock.report.lane_looks import COMPUTE, OTHERS, TRANSFER, WAITING, key

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


MOST_ROWS = 8
"""Rows with a label, evenly spaced."""


def draw_heat_map(axes: Any, panel: HeatMap) -> None:
    """Draw the cells of a panel, the first row on top."""
    cells = np.array(panel.cells, float)
    values = np.ma.masked_less_equal(cells, 0)
    begin, end = panel.window
    edges = np.linspace(begin, end, cells.shape[1] + 1)
    mesh = axes.pcolormesh(edges, np.arange(len(panel.rows) + 1), values, cmap="viridis_r", vmin=0)
    bar = axes.figure.colorbar(mesh, ax=axes, pad=0.015, fraction=0.03)
    bar.set_label(panel.unit)
    bar.outline.set_visible(False)
    step = -(-len(panel.rows) // MOST_ROWS)
    places = range(0, len(panel.rows), step)
    axes.set_yticks([place + 0.5 for place in places], [panel.rows[place] for place in places])
    axes.invert_yaxis()
    axes.set_xlim(begin, end)
    axes.grid(visible=False)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)


HEIGHT = 0.74
BELOW_LANES = 0.26
"""Inches from the axes down to the key."""


def draw_lanes(axes: Any, panel: Lanes) -> None:
    """Draw the lanes of a panel, the first job on top."""
    place = {job: len(panel.jobs) - 1 - i for i, job in enumerate(panel.jobs)}
    for part in panel.stretches:
        bottom = place[part.job] - HEIGHT / 2
        span = [(part.start, part.end - part.start)]
        if part.doing == "compute":
            axes.broken_barh(span, (bottom, HEIGHT), facecolors=COMPUTE, linewidth=0)
        elif part.doing == "wait":
            axes.broken_barh(span, (bottom, HEIGHT), **WAITING)
        else:
            # Fill the whole lane, so that a part of the bandwidth looks like a part.
            axes.broken_barh(span, (bottom, HEIGHT), facecolors=OTHERS, linewidth=0)
            axes.broken_barh(span, (bottom, HEIGHT * part.share), facecolors=TRANSFER, linewidth=0)
    axes.set_xlim(*panel.window)
    axes.set_ylim(-0.6, len(panel.jobs) - 0.4)
    axes.set_yticks([place[job] for job in panel.jobs], panel.jobs)
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_title(panel.title)
    if panel.note:
        axes.set_title(panel.note, loc="right", fontsize=8.5, fontweight="normal")
    axes.set_xlabel(panel.x, loc="left")


def draw_key(axes: Any) -> None:
    """Explain the lanes in a line below them."""
    parts = key()
    axes.legend(
        handles=parts,
        loc="upper right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=axes.transAxes
        + ScaledTranslation(0, -BELOW_LANES, axes.figure.dpi_scale_trans),
        ncols=len(parts),
        frameon=False,
        fontsize=8,
        handlelength=1.4,
        columnspacing=1.4,
        borderaxespad=0,
    )
