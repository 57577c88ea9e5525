"""static: resources in proportion to compute nodes, fixed for a job's life.

As on machines whose compute nodes are wired to I/O nodes. Option `rule`: "nearest" rounds
Q_j N / Q to the closest positive integer (paper io-resources, IV-A), "ceil" gives
ceil(C / (CN / F)) (paper forwarding, 5.4). A count that is not
on a job's curve becomes the next smaller one that is.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import JobId, View
from penstock.policies._support.counts import CurveAllocator


class Static(CurveAllocator):
    """Counts by the job's part of the machine; a running job is never moved."""

    needs: ClassVar[frozenset[str]] = frozenset({"nodes"})
    sticky: ClassVar[bool] = True

    def __init__(self, *, measured: bool = False, rule: str = "nearest") -> None:
        super().__init__(measured=measured)
        if rule not in ("nearest", "ceil"):
            raise InputError(f"static: rule is {rule!r}; give nearest or ceil")
        self.rule = rule

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return a count in proportion to each job's compute nodes."""
        site = view.site
        if site.nodes < 1:
            raise InputError("static divides by the site's compute nodes; set site.nodes")
        rounded = _nearest if self.rule == "nearest" else math.ceil
        return {
            name: self.fit(job, site, max(1, rounded(job.nodes * site.resources / site.nodes)))
            for name, job in view.jobs.items()
        }


def _nearest(value: float) -> int:
    """Return the closest whole number, of two the larger."""
    return math.floor(value + 0.5)
