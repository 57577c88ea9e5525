"""What each job did when: one lane per job; computing light, waiting hatched, I/O tall."""

from typing import Any

from matplotlib.patches import Patch

from penstock.report.findings import Lanes

COMPUTE, WAIT, IO, LACKING = "#d9e3ec", "#b5b5b5", "#0072B2", "#f3d9c6"
HEIGHT = 0.74


def draw_lanes(axes: Any, panel: Lanes) -> None:
    """Draw the lanes of a panel, the first job on top."""
    place = {job: len(panel.jobs) - 1 - i for i, job in enumerate(panel.jobs)}
    for part in panel.stretches:
        bottom = place[part.job] - HEIGHT / 2
        span = [(part.start, part.end - part.start)]
        if part.doing == "compute":
            axes.broken_barh(span, (bottom, HEIGHT), facecolors=COMPUTE, linewidth=0)
        elif part.doing == "wait":
            axes.broken_barh(
                span,
                (bottom, HEIGHT),
                facecolors="white",
                edgecolor=WAIT,
                hatch="/////",
                linewidth=0,
            )
        else:
            # Fill the whole lane, so that a part of the bandwidth looks like a part.
            axes.broken_barh(span, (bottom, HEIGHT), facecolors=LACKING, linewidth=0)
            axes.broken_barh(span, (bottom, HEIGHT * part.share), facecolors=IO, linewidth=0)
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
    parts = [
        Patch(facecolor=COMPUTE, label="computing"),
        Patch(facecolor=IO, label="transferring, as tall as its share"),
        Patch(facecolor=LACKING, label="share that others have"),
        Patch(facecolor="white", edgecolor=WAIT, hatch="/////", linewidth=0, label="waiting"),
    ]
    axes.legend(
        handles=parts,
        loc="upper right",
        bbox_to_anchor=(1.0, -0.16),
        ncols=len(parts),
        frameon=False,
        fontsize=8,
        handlelength=1.4,
        columnspacing=1.4,
        borderaxespad=0,
    )
