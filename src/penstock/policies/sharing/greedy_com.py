"""greedy-com: all the bandwidth to the phase that has the least left to transfer.

Shortest remaining processing time on the I/O resource, re-chosen at every event; it needs to know
how long phases are. Benoit, Herault, Perotin, Robert and Vivien, "Revisiting I/O bandwidth-sharing
strategies for HPC applications", JPDC 2024.

Options: `hedge`, the part of what is done that an overdue phase is taken to have left; 0 is as
published, where lengths are exact and no phase is ever overdue. `unknown`, the seconds that a phase
is taken to need before the first of its job has ended.
"""

from typing import ClassVar

from penstock.model import Job, Request, View
from penstock.policies._support.left import check, left
from penstock.policies.base import ByArrival


class GreedyCom(ByArrival):
    """One group, re-chosen at every event by the least remaining I/O of the phase."""

    preemptive: ClassVar[bool] = True
    in_order: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    def __init__(self, *, hedge: float = 0.2, unknown: float = 100.0) -> None:
        check("greedy-com", hedge=hedge, unknown=unknown)
        self.hedge, self.unknown = hedge, unknown

    def group(self, job: Job) -> str:  # noqa: ARG002
        """Return the one group there is."""
        return "all"

    def turn(self, request: Request, view: View) -> float:
        """Return the isolated seconds that the request is taken to have left."""
        return left(request, view, hedge=self.hedge, unknown=self.unknown)
