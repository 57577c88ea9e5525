"""where-known: mckp among the jobs whose curves are known, a default count for the others.

What a live site begins with: nobody knows the curve of a job that never ran there, so it gets the
site's default count and shares its resources with others, while the jobs that are known divide the
site as paper forwarding's mckp does (Section 5.3). A curve is known from two counts on. Where the
known ones cannot be divided (more jobs than resources), they have the default too.

Option `default`: the count of a job without a curve; 0 (as it is) means all there are.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, JobId, Snapshot, View
from penstock.policies.allocation.mckp import Mckp


class WhereKnown:
    """The best sum of bandwidths as far as it can be known."""

    needs: ClassVar[frozenset[str]] = frozenset()
    sticky: ClassVar[bool] = False
    brings: ClassVar[str] = "greedy-non-clairvoyant"

    def __init__(self, *, default: int = 0) -> None:
        if default < 0:
            raise InputError(f"where-known: default is {default}; give a count, or 0 for all")
        self.default = default
        self._mckp = Mckp()

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return mckp's counts, and the default."""
        resources = view.site.resources
        counts = dict.fromkeys(view.jobs, min(self.default or resources, resources))
        known = {name: job for name, job in view.jobs.items() if _is_known(job)}
        if known:
            try:
                among = Snapshot(site=view.site, jobs=known, now=view.now)
                counts |= self._mckp.allocate(among)
            except InputError:
                pass  # they share, as those that are not known do
        return counts


def _is_known(job: Job) -> bool:
    return job.curve is not None and len(job.curve.counts) > 1
