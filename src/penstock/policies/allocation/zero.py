"""zero: no job gets an I/O node; all have direct access to the file system.

The reference of paper forwarding (Section 5.4) for the benefit of forwarding.
"""

from collections.abc import Mapping

from penstock.errors import InputError
from penstock.model import JobId, View
from penstock.policies._support.counts import MeasuredAllocator


class Zero(MeasuredAllocator):
    """Direct access for every job."""

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return zero for every job, where the site allows that."""
        if not view.site.direct:
            raise InputError("zero needs direct access, which the site does not give: site.direct")
        return dict.fromkeys(view.jobs, 0)
