"""where-known: mckp among the jobs whose curves are known; the others share what is left. Ours.

For a live site, where an application is unknown until it has run. Jobs with a known curve divide
the site by paper forwarding's mckp (Section 5.3) as if no others ran; a curve is known if it has
two counts or more. The others share the rest by `size` on the least loaded resources, at least one
each, and never move a job with a known curve. If the known jobs are more than the resources, all
have one each, and share.

Option `measured`: as of mckp.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import JobId, View
from penstock.policies.allocation.mckp import Mckp


class WhereKnown(Mckp):
    """The best sum of bandwidths among jobs with known curves."""

    brings: ClassVar[str] = "greedy-non-clairvoyant"
    falls_back: ClassVar[str] = "size"
    least_points: ClassVar[int] = 2

    def __init__(self, *, measured: bool = True) -> None:
        super().__init__(measured=measured)

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return mckp's counts, or one each."""
        try:
            return super().allocate(view)
        except InputError:
            return {name: self.fit(job, view.site, 1) for name, job in view.jobs.items()}
