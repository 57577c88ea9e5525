"""The engine as judge of allocations and placements, for policies that search (decision 007)."""

from collections.abc import Sequence

import numpy as np

from penstock.model import Job, ResourceId, Site
from penstock.policies.base import Verdict
from penstock.sim.evaluate.placements import JobSet, Outcome
from penstock.sim.workload import Floats

DRAWS = 4
"""Simulations for one verdict, each with other starts of the jobs."""


class EngineJudge:
    """Simulates the jobs, as far as they are known, on the resources that they would get.

    Nobody knows where in its period each job will be. A verdict is therefore the mean over a few
    simulations in which jobs begin at random moments of their first compute phase, always the same
    ones: if all began together, a search would find placements that are good at that alone.
    """

    def __init__(self, jobs: Sequence[Job], site: Site, *, draws: int = DRAWS) -> None:
        self._sets = [JobSet(jobs, site, apart=True, seed=k) for k in range(draws)]

    def __call__(self, places: Sequence[tuple[ResourceId, ...]]) -> Verdict:
        """Return what the jobs would get."""
        return mean_verdict([several.simulate(places) for several in self._sets])


def mean_verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """Return the mean of what several simulations of the same jobs gave."""
    slowdown: Floats = np.mean([outcome.slowdown for outcome in outcomes], axis=0)
    return Verdict(
        mean_slowdown=float(slowdown.mean()),
        idle_time=float(np.mean([outcome.idle_time for outcome in outcomes])),
        bandwidth=float(np.mean([outcome.bandwidth for outcome in outcomes])),
        slowdown=slowdown,
    )
