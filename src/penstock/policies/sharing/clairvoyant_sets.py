"""clairvoyant-sets: the sets are the classes that the workload's generator drew the jobs from.

An oracle to measure set-10's mapping against (paper io-sets, Section VI-B2, CLAIRVOYANT). A job
says its class in the hint `profile`, the class's mean characteristic time. The paper gives no
weights for it; these follow set-10: 10^-round(log10 of the class mean).
"""

import math
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job
from penstock.policies.base import ByArrival


class ClairvoyantSets(ByArrival):
    """Sets by the generator's class, with set-10's priority of the class mean."""

    needs: ClassVar[frozenset[str]] = frozenset({"profile"})

    def group(self, job: Job) -> float:
        """Return the mean characteristic time of the job's class."""
        profile = job.hints.get("profile")
        if not isinstance(profile, float | int) or not profile > 0:
            raise InputError(
                f"job {job.id!r} has no positive hint 'profile', which clairvoyant-sets needs; "
                "generate the workload with 'penstock generate', or use set-10"
            )
        return float(profile)

    def weight(self, job: Job) -> float:
        """Return 10^-round(log10 of the class mean)."""
        return 10.0 ** -round(math.log10(self.group(job)))
