"""random: every job gets a count drawn evenly from those it may have (paper io-resources, IV-A).

Option `seed`: a job's draw depends on it and on the job alone, so that it keeps its count.
"""

from collections.abc import Mapping

import numpy as np

from penstock.errors import InputError
from penstock.model import JobId, View
from penstock.policies._support.counts import CurveAllocator


class Random(CurveAllocator):
    """A baseline without any knowledge."""

    def __init__(self, *, measured: bool = False, seed: int = 0) -> None:
        super().__init__(measured=measured)
        if seed < 0:
            raise InputError(f"random: seed is {seed}; give zero or more")
        self.seed = seed

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return a count for every job."""
        result = {}
        for name, job in view.jobs.items():
            counts = self.counts(job, view.site)
            result[name] = counts[
                int(np.random.default_rng([self.seed, job.serial]).integers(len(counts)))
            ]
        return result
