"""A phase Gantt of a simulated run: what each job did when, and which share it was granted."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.files import replacing
from penstock.report.lane_looks import COMPUTE, OTHERS, TRANSFER, WAITING, key
from penstock.sim.run import Run
from penstock.sim.workload import Floats

FORMATS = (".png", ".svg", ".pdf")
MOST_JOBS = 60
ITERATIONS_IN_VIEW = 30
MOST_BARS = 6000
LONGEST_NAME = 18
INK, OUTSIDE = "#333333", "#f2f2f2"
LANE = 0.86
"""The part of a row's height that is a whole resource."""
Longs = NDArray[np.int64]
Bar = tuple[float, float, float, float]
"""Left, right, top, bottom."""


def check_format(path: Path) -> None:
    """Raise InputError unless the file's suffix is a picture's that we can draw."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path} ends in none of {', '.join(FORMATS)}; the suffix says the format")


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """Which jobs and times are drawn."""

    begin: float
    end: float
    jobs: Longs


def draw(
    run: Run,
    path: Path,
    *,
    title: str,
    span: tuple[float, float] | None = None,
    window: tuple[float, float] | None = None,
) -> str:
    """Draw the run, which has a timeline, and return which part of it can be seen.

    Without a span, one begins with the window and is short enough for single phases to be seen.
    """
    check_format(path)
    assert run.timeline is not None
    view = _choose(run, span, window)
    height = 1.9 + 0.19 * max(6, len(view.jobs))
    figure = Figure(figsize=(13, height), layout="constrained", dpi=130)
    ratios = [0.19 * max(6, len(view.jobs)), 0.75]
    lanes, load = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": ratios})
    _draw_jobs(lanes, run, view)
    _draw_load(load, run, view)
    for axes in (lanes, load):
        _mark_window(axes, view, window)
    part = (
        f"{view.begin:g} to {view.end:g} s, {len(view.jobs):,} of {len(run.workload):,} jobs"
        f"{', those that do I/O then' if len(view.jobs) < len(run.workload) else ''}"
    )
    lanes.set_title(f"{title}: {part}", loc="left", fontsize=11, pad=26, parse_math=False)
    legend = key()
    if window is not None and (window[0] > view.begin or window[1] < view.end):
        legend.append(Patch(color=OUTSIDE, label="outside the measured window"))
    lanes.legend(
        handles=legend, loc="lower left", bbox_to_anchor=(0, 1), ncols=5, frameon=False, fontsize=8
    )
    with replacing(path) as partial:
        figure.savefig(partial, format=path.suffix[1:].lower())
    return part if span is not None else f"{part}; choose others with --plot-window A:B"


def _choose(
    run: Run, span: tuple[float, float] | None, window: tuple[float, float] | None
) -> _View:
    workload = run.workload
    begin, end = span or window or (0.0, run.makespan)
    end = end if span else min(end, run.makespan)
    if span is None:
        there = np.flatnonzero((run.start < end) & (run.finish > begin))
        if len(there):
            readable = ITERATIONS_IN_VIEW * float(np.quantile(workload.w_iter[there], 0.1))
            end = end if end - begin <= readable else _tidy(begin, begin + readable)
    there = np.flatnonzero((run.start < end) & (run.finish > begin))
    if not len(there):
        raise InputError(
            f"no job runs between {begin:g} and {end:g} s (they end at {run.makespan:g} s); "
            "choose another --plot-window"
        )
    view = _View(begin=begin, end=end, jobs=there)
    in_io = [j for j in there.tolist() if _does_io(run, j, view)]
    there = np.array(in_io or there)
    by_period = there[np.argsort(workload.w_iter[there], kind="stable")]
    if len(by_period) > MOST_JOBS:
        by_period = by_period[np.linspace(0, len(by_period) - 1, MOST_JOBS).round().astype(int)]
    bars = sum(len(_phases(run, int(j), view)) for j in by_period)
    if span is None and bars > MOST_BARS:
        end = _tidy(begin, begin + (end - begin) * MOST_BARS / bars)
    return _View(begin=begin, end=end, jobs=by_period)


def _tidy(begin: float, end: float) -> float:
    """Return an end that is not later and makes a span of 1, 2 or 5 times a power of ten."""
    length = end - begin
    unit = 10.0 ** np.floor(np.log10(length))
    whole = max(m * unit for m in (1, 2, 5) if m * unit <= length * 1.0001)
    return begin + float(whole)


def _phases(run: Run, j: int, view: _View) -> Longs:
    """Return the iterations of job j that can be seen."""
    first, stop = run.workload.offsets[j : j + 2]
    low = int(np.searchsorted(run.end[first:stop], view.begin, side="right"))
    high = int(np.searchsorted(run.request[first:stop], view.end, side="left"))
    # The next one's computation may still reach into view.
    return np.arange(first + low, min(first + high + 1, stop))


def _does_io(run: Run, j: int, view: _View) -> bool:
    return bool((run.request[_phases(run, j, view)] < view.end).any())


def _draw_jobs(axes: Axes, run: Run, view: _View) -> None:
    computing, in_io = list[Bar](), list[Bar]()
    for row, j in enumerate(view.jobs.tolist()):
        phases = _phases(run, j, view)
        head = run.workload.offsets[j]
        lane = LANE / len(run.workload.resources_of(j))
        lanes = row + np.arange(lane, LANE + lane / 2, lane)
        usable = lane * run.workload.max_share[j]
        for i in phases.tolist():
            start = run.start[j] if i == head else run.end[i - 1]
            computing.append((start, run.request[i], row + LANE - 0.12, row + LANE))
            in_io += [(run.request[i], run.end[i], bottom - usable, bottom) for bottom in lanes]
    granted, usable_then = _granted(run, view)
    _bars(axes, in_io, **WAITING)
    _bars(axes, computing, facecolor=COMPUTE)
    _bars(axes, usable_then, facecolor=OTHERS)
    _bars(axes, granted, facecolor=TRANSFER)
    names = [run.workload.id(j) for j in view.jobs.tolist()]
    short = [
        n if len(n) <= LONGEST_NAME else n[: LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"
        for n in names
    ]
    axes.set_yticks(np.arange(len(names)) + LANE / 2, short, fontsize=7)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylabel("job", fontsize=8)
    period = axes.secondary_yaxis("right")
    period.set_yticks(
        np.arange(len(names)) + LANE / 2,
        [f"{w:.3g}" if w < 100 else f"{w:,.0f}" for w in run.workload.w_iter[view.jobs]],
        fontsize=7,
    )
    period.set_ylabel("w_iter, s", fontsize=8)
    period.tick_params(length=0)
    period.spines["right"].set_visible(False)
    axes.set_ylim(len(names), -0.15)
    axes.set_xlim(view.begin, view.end)
    axes.tick_params(length=0, labelbottom=False)
    axes.hlines(
        np.arange(len(names)) + LANE, view.begin, view.end, color="#e6e6e6", lw=0.5, zorder=0
    )
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)


def _granted(run: Run, view: _View) -> tuple[list[Bar], list[Bar]]:
    """Return the bars of granted shares, a lane for each resource of a job, and of all of it."""
    timeline = run.timeline
    assert timeline is not None
    row_of = np.full(len(run.workload), -1)
    row_of[view.jobs] = np.arange(len(view.jobs))
    visible = (
        (timeline.start < view.end) & (timeline.end > view.begin) & (row_of[timeline.job] >= 0)
    )
    granted, usable = list[Bar](), list[Bar]()
    for k in np.flatnonzero(visible).tolist():
        job, span = int(timeline.job[k]), (timeline.start[k], timeline.end[k])
        resources = run.workload.resources_of(job)
        lane = LANE / len(resources)
        bottom = row_of[job] + lane * (1 + resources.index(int(timeline.resource[k])))
        granted.append((*span, bottom - lane * timeline.share[k], bottom))
        usable.append((*span, bottom - lane * run.workload.max_share[job], bottom))
    return granted, usable


def _bars(axes: Axes, bars: list[Bar], **look: Any) -> None:
    corners = [
        ((left, top), (right, top), (right, bottom), (left, bottom))
        for left, right, top, bottom in bars
    ]
    # An edge keeps phases that are narrower than a pixel in sight.
    edge = {"edgecolor": look["facecolor"], "linewidth": 0.3}
    axes.add_collection(PolyCollection(corners, **(edge | look)))


def _draw_load(axes: Axes, run: Run, view: _View) -> None:
    """Draw the part of all resources that is granted, over time."""
    timeline = run.timeline
    assert timeline is not None
    visible = (timeline.start < view.end) & (timeline.end > view.begin)
    times = np.concatenate((timeline.start[visible], timeline.end[visible]))
    change = np.concatenate((timeline.share[visible], -timeline.share[visible]))
    order = np.argsort(times, kind="stable")
    granted: Floats = np.cumsum(change[order]) / run.site.resources
    axes.fill_between(times[order], granted, step="post", color=TRANSFER, lw=0, alpha=0.75)
    axes.set_ylim(0, 1.05)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"], fontsize=7)
    axes.set_ylabel("granted,\nall jobs", fontsize=8)
    axes.set_xlabel("time, s", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _mark_window(axes: Axes, view: _View, window: tuple[float, float] | None) -> None:
    if window is None:
        return
    for left, right in ((view.begin, window[0]), (window[1], view.end)):
        if left < right:
            axes.axvspan(max(left, view.begin), min(right, view.end), color=OUTSIDE, zorder=-1)
    for edge in window:
        if view.begin < edge < view.end:
            axes.axvline(edge, color=INK, lw=0.8, ls="--")
