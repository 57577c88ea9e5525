"""Which policies can run live: what a controller can know of a job, and from where.

A policy lists in `needs` what it must know. A controller counts and learns some of it, and a
program (or `penstock run --hint`) may announce some; the rest is known in simulations alone.
"""

from collections.abc import Collection
from typing import Literal

from penstock.core.ledger import KNOWN

Source = Literal["", "learnt", "estimated", "announced", "never"]
"""From where a controller knows what a policy needs, the surest first. "": it needs nothing, or
what is counted anyway."""

COUNTED = frozenset({"progress", "nodes", "processes"})
LEARNT = frozenset({"w_iter", "curve", "best-count", "volume", "compute"})
"""From earlier phases of the application; volume and compute are those of one phase."""
ESTIMATED = frozenset({"remaining", "io"})
"""As announced by the program, else the mean of the job's earlier phases."""
ANNOUNCED = frozenset({"work"})
"""Known only of jobs that announce it."""


def source(kind: str, needs: Collection[str]) -> Source:
    """Return from where a controller knows what a policy of a kind needs."""
    wanted = frozenset(needs)
    known = KNOWN if kind == "sharing" else LEARNT | COUNTED
    if kind == "packing" or not wanted <= known:
        return "never"
    if wanted & ANNOUNCED:
        return "announced"
    if wanted & ESTIMATED:
        return "estimated"
    return "learnt" if wanted & LEARNT else ""


def runs_live(kind: str, needs: Collection[str]) -> bool:
    """Return True if a controller can know all that a policy needs, if only as an estimate.

    Packers plan a queue before it starts, so none of them runs in a controller.
    """
    return source(kind, needs) != "never"


def in_words(kind: str, needs: Collection[str]) -> str:
    """Say whether a policy can run live, and who tells the controller what it needs."""
    if kind == "packing":
        return "no: plans a queue before it starts"
    match source(kind, needs):
        case "never":
            return "no"
        case "":
            return "yes"
        case known:
            return f"yes, {known}"
