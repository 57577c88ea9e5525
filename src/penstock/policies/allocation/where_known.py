"""where-known: mckp among the jobs whose curves are known, a default count for the others.

For a new live site: the curve of a job that never ran there is unknown, so it gets the default
count and shares its resources with others, while jobs with known curves divide the site by paper
forwarding's mckp (Section 5.3). A curve is known if it has two counts or more. If mckp cannot
divide the site (more jobs than resources), all jobs get the default.

Option `default`: the count of a job without a known curve; 0 (the default) is all resources.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, JobId, Snapshot, View
from penstock.policies.allocation.mckp import Mckp


class WhereKnown:
    """The best sum of bandwidths among jobs with known curves."""

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
        jobs = {name: job for name, job in view.jobs.items() if _has_curve(job)}
        if jobs:
            try:
                among = Snapshot(site=view.site, jobs=jobs, now=view.now)
                counts |= self._mckp.allocate(among)
            except InputError:
                pass  # all jobs share the default count of resources
        return counts


def _has_curve(job: Job) -> bool:
    return job.curve is not None and len(job.curve.counts) > 1
