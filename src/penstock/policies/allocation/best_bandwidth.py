"""best-bandwidth: every job gets the count at which its own bandwidth is highest, n_perf.

It needs only that count, not the curve. Good while the site is not saturated; then jobs share more
resources and wait for each other. Paper io-resources, Section IV-A (BestBdw).
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.model import JobId, View
from penstock.policies._support.counts import CurveAllocator


class BestBandwidth(CurveAllocator):
    """n_perf of every job (Equation 1)."""

    needs: ClassVar[frozenset[str]] = frozenset({"best-count"})

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return n_perf of every job."""
        return {name: self.options(job, view.site).n_perf for name, job in view.jobs.items()}
