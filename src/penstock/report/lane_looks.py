"""How what a job does is drawn in lanes: one look in all figures, that of the dashboard.

live/http/page/colours.css has the same colours.
"""

from typing import Any

from matplotlib.patches import Patch

COMPUTE, TRANSFER, OTHERS = "#c3c9d0", "#0072b2", "#d6e7f3"
WAITING: dict[str, Any] = {
    "facecolor": "#fbe9d3",
    "edgecolor": "#b04c00",
    "hatch": "/////",
    "linewidth": 0,
}


def key() -> list[Patch]:
    """Return the entries of a legend."""
    return [
        Patch(facecolor=COMPUTE, label="computing"),
        Patch(facecolor=TRANSFER, label="transferring, as tall as its share"),
        Patch(facecolor=OTHERS, label="share that others have"),
        Patch(**WAITING, label="waiting for its turn"),
    ]
