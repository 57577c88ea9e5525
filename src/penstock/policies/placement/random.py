"""random: every job gets resources drawn evenly (paper io-resources, Section IV-B).

Option `seed`: a job's draw depends on it and on the job alone, so that it keeps its resources.
"""

from typing import ClassVar

import numpy as np

from penstock.errors import InputError
from penstock.model import View
from penstock.policies.base import NOBODY, Counts, Placement

PLACES = 1
"""Makes these draws others than those of the random allocator."""


class Random:
    """What many machines do."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, seed: int = 0) -> None:
        if seed < 0:
            raise InputError(f"random: seed is {seed}; give zero or more")
        self.seed = seed

    def place(
        self,
        view: View,
        counts: Counts,
        staying: Placement = NOBODY,  # noqa: ARG002
    ) -> Placement:
        """Return distinct resources for every job."""
        places = {}
        for name, count in counts.items():
            rng = np.random.default_rng([self.seed, view.jobs[name].serial, PLACES])
            places[name] = tuple(rng.permutation(view.site.resources)[:count].tolist())
        return places
