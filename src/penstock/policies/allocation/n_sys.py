"""n-sys: every job gets the count at which it stresses the site least.

I/O-Stress(n) = n T_io(n) / (T_cpu + T_io(n)); the sum over jobs is the lowest I/O-load that any
allocation has. Direct access, which the paper does not have, stresses no resource and is left out.
Paper io-resources, Section IV-A (Nsys-Allocator), Equation (2).
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.model import JobId, View
from penstock.policies._support.counts import CurveAllocator


class NSys(CurveAllocator):
    """n_sys of every job."""

    needs: ClassVar[frozenset[str]] = frozenset({"compute", "curve", "volume"})
    goes_direct: ClassVar[bool] = False

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return n_sys of every job."""
        return {name: self.options(job, view.site).n_sys for name, job in view.jobs.items()}
