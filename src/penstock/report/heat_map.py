"""Which ranks moved how much when: one row per group of ranks, darker cells for more bytes."""

from typing import Any

import numpy as np

from penstock.report.findings import HeatMap

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
