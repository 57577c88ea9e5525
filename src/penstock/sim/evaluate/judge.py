"""The engine as judge of allocations and placements, for policies that search (decision 007)."""

from collections.abc import Sequence

from penstock.model import Job, ResourceId, Site
from penstock.policies.base import Verdict
from penstock.sim.evaluate.placements import JobSet


class EngineJudge:
    """Simulates the jobs, as far as they are known, on the resources that they would get."""

    def __init__(self, jobs: Sequence[Job], site: Site) -> None:
        self._jobs = JobSet(jobs, site)

    def __call__(self, places: Sequence[tuple[ResourceId, ...]]) -> Verdict:
        """Return what the jobs would get."""
        outcome = self._jobs.simulate(places)
        return Verdict(
            mean_slowdown=outcome.mean_slowdown,
            idle_time=outcome.idle_time,
            bandwidth=outcome.bandwidth,
            slowdown=outcome.slowdown,
        )
