"""Figures in one style, with labels on the curves themselves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from penstock.files import replacing
from penstock.report.findings import Bars, Curves, Dots, Figure, HeatMap, Lanes, Panel, Scatter
from penstock.report.gantt import check_format
from penstock.report.panels import (
    bars_width,
    draw_bars,
    draw_heat_map,
    draw_key,
    draw_lanes,
    labels_below,
)
from penstock.report.style import LOOKS, look

INK, FAINT, GRID = "#222222", "#6b6b6b", "#e4e4e4"
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9a9a9a",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "penstock",
    "axes.formatter.useoffset": False,
}
TOP, TITLE, AXIS = 0.42, 0.34, 0.56
"""Inches above all panels, above one for its title, and below one for its axis."""
ALL_MARKERS, SOME_MARKERS = 21, 11
"""With up to this many points each has a marker; otherwise this many have one."""
LABEL = 8.0
WIDTH = 0.068
"""Inches that a letter of a long label takes."""
FORMATS = ("png", "svg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Inches of a panel: its axes, and the space left, right of and below them."""

    width: float
    height: float
    left: float
    right: float
    below: float = AXIS


def draw(figure: Figure) -> Canvas:
    """Return a figure as matplotlib's, with its title above and without its caption."""
    rows = _rows(figure)
    rooms = [[_room(panel, first=panel is row[0]) for panel in row] for row in rows]
    width = max(sum(room.left + room.width + room.right for room in row) for row in rooms)
    width = max(width, 0.6 + 0.095 * len(figure.title) + 0.075 * len(figure.source))
    height = TOP + sum(max(_tall(room) for room in row) for row in rooms)
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(width, height))
        canvas.text(
            0.12 / width, 1 - 0.12 / height, figure.title, va="top", fontsize=11.5, weight="bold"
        )
        canvas.text(
            1 - 0.12 / width, 1 - 0.14 / height, figure.source, va="top", ha="right", color=FAINT
        )
        y = height - TOP
        for row, places in zip(rows, rooms, strict=True):
            x = 0.0
            for panel, room in zip(row, places, strict=True):
                corner = ((x + room.left) / width, (y - TITLE - room.height) / height)
                axes = canvas.add_axes((*corner, room.width / width, room.height / height))
                _draw_panel(axes, panel, first=panel is row[0])
                if isinstance(panel, Lanes) and panel is figure.panels[-1]:
                    draw_key(axes)
                x += room.left + room.width + room.right
            y -= max(_tall(room) for room in places)
    return canvas


def _rows(figure: Figure) -> list[Sequence[Panel]]:
    length = 1 if figure.stacked else figure.columns or len(figure.panels)
    return [figure.panels[i : i + length] for i in range(0, len(figure.panels), length)]


def _tall(room: Room) -> float:
    return TITLE + room.height + room.below


def save(figure: Figure, directory: Path) -> dict[str, Path]:
    """Write a figure in all formats and return the files by format."""
    canvas = draw(figure)
    files = {}
    with mpl.rc_context(STYLE):
        for extension in FORMATS:
            files[extension] = directory / f"{figure.name}.{extension}"
            metadata = {"Date": None} if extension == "svg" else {"Software": None}
            with replacing(files[extension]) as partial:
                canvas.savefig(partial, dpi=160, metadata=metadata)
    return files


def write(figure: Figure, path: Path) -> None:
    """Write a figure into one file, in the format that its suffix says."""
    check_format(path)
    canvas = draw(figure)
    with mpl.rc_context(STYLE), replacing(path) as partial:
        canvas.savefig(partial, dpi=160, format=path.suffix.lower().removeprefix("."))


def _room(panel: Panel, *, first: bool) -> Room:
    if isinstance(panel, Dots):
        rows, longest = len(panel.labels), max(map(len, panel.labels))
        left = max(1.25, 0.3 + WIDTH * longest) if first else 0.3
        return Room(width=3.0, height=0.25 + 0.33 * rows, left=left, right=0.2)
    if isinstance(panel, Lanes):
        height, below = 0.1 + 0.3 * len(panel.jobs), AXIS if panel.x else AXIS / 2
        return Room(width=8.0, height=height, left=1.1, right=0.25, below=below)
    if isinstance(panel, HeatMap):
        return Room(width=7.4, height=0.2 + 0.16 * len(panel.rows), left=1.0, right=1.1)
    if isinstance(panel, Bars):
        return Room(
            width=bars_width(panel),
            height=1.05 if panel.small else 2.5,
            left=0.62 if panel.small else 0.84,
            right=1.06 if panel.key or panel.references else 0.2,
            below=AXIS + labels_below(panel) - (0.0 if panel.x else 0.2),
        )
    if isinstance(panel, Scatter):
        return Room(width=2.9, height=2.5, left=0.84, right=1.3)
    names = [series.label for series in panel.series] + [line.label for line in panel.references]
    right = max(1.06, 0.28 + WIDTH * max(map(len, names), default=0))
    return Room(width=2.9, height=2.5, left=0.84, right=right)


def _draw_panel(axes: Any, panel: Panel, *, first: bool) -> None:
    if isinstance(panel, Curves):
        _draw_curves(axes, panel)
        _label_curves(axes, panel)
    elif isinstance(panel, Dots):
        _draw_dots(axes, panel, names=first)
    elif isinstance(panel, Bars):
        colours = {s.label: LOOKS[s.label].colour for s in panel.series if s.label in LOOKS}
        draw_bars(axes, panel, colours)
    elif isinstance(panel, Scatter):
        _draw_scatter(axes, panel)
    elif isinstance(panel, HeatMap):
        draw_heat_map(axes, panel)
    else:
        draw_lanes(axes, panel)


def _draw_curves(axes: Any, panel: Curves) -> None:
    axes.margins(x=0.03, y=0.07)
    for reference in panel.references:
        axes.axhline(reference.y, color=FAINT, linewidth=0.9, linestyle=(0, (1, 2)), zorder=2)
    for series in panel.series:
        style = look(series.label)
        if len(series.low) and len(series.x) > 1:
            axes.fill_between(
                series.x, series.low, series.high, color=style.colour, alpha=0.15, linewidth=0
            )
        axes.plot(
            series.x,
            series.y,
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            markevery=_every(len(series.x)),
            markeredgecolor="white",
            markeredgewidth=0.5,
            zorder=4 if series.label.startswith("set-10") else 3,
        )
    if all(x == int(x) for series in panel.series for x in series.x) and not panel.log_x:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 4, 5, 10]))
    if panel.log_x:
        axes.set_xscale("log")
        if max(panel.series[0].x) <= 100 * min(panel.series[0].x):
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if panel.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(
            FixedLocator([0.1, 0.2, 0.3, 0.5, 1, 1.5, 2, 3, 5, 7, 10, 15, 20])
        )
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(bottom=panel.bottom, top=panel.top)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.autoscale_view()


def _every(points: int) -> int:
    return 1 if points <= ALL_MARKERS else -(-points // SOME_MARKERS)


def _label_curves(axes: Any, panel: Curves) -> None:
    """Write each curve's name beside its end, moved apart where names would overlap."""
    low, high = axes.get_ylim()
    height = float(axes.get_window_extent().height) * 72 / axes.figure.dpi

    def points(y: float) -> float:
        return float(height * _part(y, low, high, log=panel.log_y))

    labels = sorted(
        [(points(s.y[-1]), s.label, look(s.label).colour) for s in panel.series]
        + [(points(reference.y), reference.label, FAINT) for reference in panel.references]
    )
    positions = spread([y for y, _, _ in labels], 1.25 * LABEL)
    for (y, label, colour), at in zip(labels, positions, strict=True):
        axes.annotate(
            label,
            xy=(1.0, y / height),
            xytext=(12, at - y),
            xycoords="axes fraction",
            textcoords="offset points",
            color=colour,
            fontsize=LABEL,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkA": 0, "shrinkB": 0},
        )


def _part(y: float, low: float, high: float, *, log: bool) -> float:
    """Return where y stands between the ends of an axis, from 0 to 1."""
    if log:
        y, low, high = math.log(y), math.log(low), math.log(high)
    return (y - low) / (high - low)


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Return sorted positions moved as little as needed to be `gap` apart."""
    positions = np.array(heights, float)
    for _ in range(200):
        overlap = gap - np.diff(positions)
        if not (overlap > 1e-6).any():
            break
        push = np.clip(overlap, 0, None) / 2
        positions[:-1] -= push
        positions[1:] += push
    return [float(position) for position in positions]


def _draw_dots(axes: Any, panel: Dots, *, names: bool) -> None:
    places = range(len(panel.labels), 0, -1)
    best = (max if panel.better == "higher" else min)(panel.value)
    rows = zip(places, panel.labels, panel.value, panel.low, panel.high, strict=True)
    for place, label, value, low, high in rows:
        style = look(label)
        axes.plot([low, high], [place, place], color=style.colour, linewidth=3, alpha=0.35)
        axes.plot(value, place, marker=style.marker, color=style.colour, markersize=6.5)
        axes.annotate(
            f"{value:{panel.form}}",
            (value, place),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            color=style.colour,
            fontweight="bold" if value == best else "normal",
        )
    if panel.reference is not None:
        axes.axvline(panel.reference, color=FAINT, linewidth=0.9, linestyle=(0, (1, 2)))
    axes.set_yticks(list(places), panel.labels)
    axes.tick_params(labelleft=names)
    if names:
        for tick, label in zip(axes.get_yticklabels(), panel.labels, strict=True):
            tick.set_color(look(label).colour)
    axes.set_ylim(0.4, len(panel.labels) + 0.75)
    if panel.log:
        _log_scale(axes.xaxis, axes.set_xscale)
    axes.margins(x=0.12)
    axes.grid(axis="y", visible=False)
    axes.set_title(panel.title)
    axes.set_xlabel(f"{panel.better} is better")


def _log_scale(axis: Any, set_scale: Any, ticks: Sequence[float] = (1, 2, 5)) -> None:
    set_scale("log")
    axis.set_major_locator(LogLocator(subs=ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _draw_scatter(axes: Any, panel: Scatter) -> None:
    for cloud in panel.clouds:
        style = look(cloud.label)
        axes.plot(
            cloud.x,
            cloud.y,
            label=cloud.label,
            color=style.colour,
            marker=style.marker,
            linestyle=style.line if cloud.joined else "none",
            linewidth=0.9,
            markersize=6,
            markeredgecolor="white",
            markeredgewidth=0.5,
        )
    if panel.log_y:
        _log_scale(axes.yaxis, axes.set_yscale, ticks=(1, 1.5, 2, 3, 4, 5, 7))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=LABEL)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
