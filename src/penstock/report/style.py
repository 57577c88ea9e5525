"""How each policy is drawn, in every figure: a colour, a line and a marker.

The colours are those of Okabe and Ito, and of Tol's muted scheme for the list orders, which
readers with any kind of colour vision distinguish; lines and markers do the same in a grey print.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a policy is drawn, everywhere."""

    colour: str
    line: Any = "-"
    marker: str = "o"


LOOKS: Mapping[str, Look] = {
    "set-10": Look(colour="#0072B2"),
    "fair-share": Look(colour="#D55E00", marker="s"),
    "exclusive-fcfs": Look(colour="#555555", marker="^", line=(0, (4, 1.5))),
    "set-fair-share": Look(colour="#56B4E9", marker="D", line=(0, (6, 1.5, 1, 1.5))),
    "share-priority": Look(colour="#009E73", marker="v", line=(0, (2.5, 1.2))),
    "clairvoyant-sets": Look(colour="#000000", marker="x", line=(0, (1, 1))),
    "greedy-yield": Look(colour="#CC79A7", marker="P"),
    "greedy-com": Look(colour="#B58900", marker="X"),
    "fair-finish": Look(colour="#6A3D9A", marker="*"),
    "mckp": Look(colour="#0072B2"),
    "static": Look(colour="#D55E00", marker="s"),
    "size": Look(colour="#009E73", marker="v", line=(0, (2.5, 1.2))),
    "process": Look(colour="#56B4E9", marker="D", line=(0, (6, 1.5, 1, 1.5))),
    "one": Look(colour="#CC79A7", marker="P"),
    "zero": Look(colour="#555555", marker="^", line=(0, (4, 1.5))),
    "best-bandwidth": Look(colour="#E69F00", marker="<"),
    "n-sys": Look(colour="#44AA99", marker="h", line=(0, (2.5, 1.2))),
    "t-cpu": Look(colour="#332288", marker="p"),
    "random": Look(colour="#AA4499", marker="8", line=(0, (1, 1))),
    "search": Look(colour="#117733", marker="D"),
    "oracle": Look(colour="#000000", marker="x", line=(0, (1, 1))),
    "clairvoyant": Look(colour="#56B4E9", marker="D"),
    "non-clairvoyant": Look(colour="#D55E00", marker="s"),
    "measured": Look(colour="#555555", marker="s"),
    "polynomial": Look(colour="#0072B2", marker="", line=(0, (4, 1.5))),
    "lowest-id": Look(colour="#332288", marker="<"),
    "longest-io": Look(colour="#882255", marker=">"),
    "shortest-io": Look(colour="#44AA99", marker="d", line=(0, (6, 1.5, 1, 1.5))),
    "shortest-remaining": Look(colour="#CC6677", marker="p"),
    "longest-remaining": Look(colour="#117733", marker="h", line=(0, (2.5, 1.2))),
    "lowest-io-ratio": Look(colour="#AA4499", marker="8", line=(0, (1, 1))),
    "worst-stretch": Look(colour="#999933", marker="H"),
    "first-fit": Look(colour="#555555", marker="^", line=(0, (4, 1.5))),
    "pack-partition": Look(colour="#0072B2"),
    "pack-partition, alpha": Look(colour="#D55E00", marker="s", line=(0, (4, 1.5))),
    "pack-partition, longest-remaining": Look(colour="#AA4499", marker="v", line=(0, (1, 1))),
    "backfill": Look(colour="#56B4E9", marker="D", line=(0, (2.5, 1.2))),
    "no-barriers": Look(colour="#B58900", marker="X"),
    "dominant-share": Look(colour="#009E73", marker="P"),
    **{
        label: Look(colour=colour, marker=marker)
        for colour, marker, labels in (
            (
                "#0072B2",
                "o",
                ("discounted-ucb", "write", "A", "epsilon 0.07", "lasso", "cetus", "promised"),
            ),
            (
                "#D55E00",
                "s",
                ("epsilon-greedy", "read", "B", "epsilon 0.1", "ours", "titan", "simulated"),
            ),
            ("#009E73", "v", ("ucb1", "C", "epsilon 0.15", "forest")),
            ("#CC79A7", "P", ("thompson", "D", "epsilon 0.2", "tree")),
            ("#555555", "^", ("sliding-ucb", "E", "median", "linear", "paper's lasso")),
            ("#B58900", "X", ("scaled-ucb1", "F", "99%", "ridge")),
        )
        for label in labels
    },
}
OTHER = Look(colour="#8c8c00", marker="d", line=(0, (5, 1, 1, 1)))


def look(label: str) -> Look:
    """Return how a policy is drawn.

    A variant ("set-10, learned") keeps its policy's colour, unless it has a look of its own.
    """
    if label in LOOKS:
        return LOOKS[label]
    policy, _, variant = label.partition(",")
    base = LOOKS.get(policy, OTHER)
    return Look(colour=base.colour, line=(0, (1.5, 1)), marker="o") if variant else base
