"""greedy-com: all the bandwidth to the phase that has the least left to transfer.

Shortest remaining processing time on the I/O resource, re-chosen at every event; it needs to know
how much a phase will still transfer. Benoit, Herault, Perotin, Robert and Vivien, "Revisiting I/O
bandwidth-sharing strategies for HPC applications", JPDC 2024.
"""

from typing import ClassVar

from penstock.model import Job, Request, View
from penstock.policies.base import ByArrival


class GreedyCom(ByArrival):
    """One group, re-chosen at every event by the least remaining I/O of the phase."""

    preemptive: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})
    order: ClassVar[str | None] = "remaining-io"

    def group(self, job: Job) -> str:  # noqa: ARG002
        """Return the one group there is."""
        return "all"

    def turn(self, request: Request, view: View) -> float:
        """Return the isolated seconds that the request still needs."""
        return view.remaining(request)
