"""set-10: one job at a time among jobs of similar period, weighted sharing between the sets.

The set of a job is the order of magnitude of its characteristic time, round(log10 w_iter), and the
weight of set i is 10^-i: jobs with short periods have short phases, and serving those first delays
the long ones little. Paper io-sets, Section IV-C, Equations (3) and (4).

Option `unknown`: the set of a job whose w_iter is not known yet. The default is the slowest set
in a year of PlaFRIM's jobs (Section VIII), so that a job without history cannot push others aside
(Section VII-B).
"""

import math
from typing import ClassVar

from penstock.model import Job
from penstock.policies.base import ByArrival


class Set10(ByArrival):
    """Sets by order of magnitude of w_iter, with priorities by set."""

    needs: ClassVar[frozenset[str]] = frozenset({"w_iter"})

    def __init__(self, *, unknown: int = 5) -> None:
        self.unknown = unknown

    def group(self, job: Job) -> int:
        """Return the job's set, round(log10 w_iter)."""
        return self.unknown if job.w_iter is None else round(math.log10(job.w_iter))

    def weight(self, job: Job) -> float:
        """Return the priority of the job's set, 10^-set."""
        return 10.0 ** -self.group(job)
