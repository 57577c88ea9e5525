"""Allocators and placers side by side, by the metrics of paper io-resources (Section III-C).

All jobs of a workload run together, each on the resources that it was given, which jobs share
evenly, until the first of them ends (`placements`). A job's phases are alike. What the policies
know may be wrong (`knowledge`); what happens is what the workload has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.campaign.policy_file import PolicyFile, policy_errors
from penstock.config.sections import AllocationSection, PlacementSection
from penstock.core import answers
from penstock.errors import InputError
from penstock.model import Job, Site, Snapshot
from penstock.sim.evaluate.gains import Metrics
from penstock.sim.evaluate.placements import JobSet, Places
from penstock.sim.knowledge import Knowledge
from penstock.sim.workload import Workload

METRICS = Metrics(
    primary="mean_slowdown",
    higher_is_better={
        "mean_slowdown": False,
        "max_slowdown": False,
        "rho_io": False,
        "rho_con": False,
        "spread": False,
        "idle_time": False,
        "bandwidth": True,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How resources are divided: how many each job gets, and which ones."""

    allocation: AllocationSection
    placement: PlacementSection

    @property
    def needs(self) -> frozenset[str]:
        """What both policies must know of a job."""
        allocator, placer = self._policies()
        return frozenset(allocator.needs) | frozenset(placer.needs)

    def figures(
        self, jobs: Sequence[Job], site: Site, known: Sequence[Job] | None = None
    ) -> dict[str, Any]:
        """Return the paper's metrics of jobs that run together, and what each got."""
        allocator, placer = self._policies()
        snapshot = Snapshot.of(list(jobs if known is None else known), site)
        with policy_errors(self.allocation.policy, self.placement.policy):
            counts = answers.allocate(allocator, snapshot)
            places = answers.place(placer, snapshot, counts, {})
        return measure(jobs, site, [tuple(sorted(places[job.id])) for job in jobs])

    def _policies(self) -> tuple[Any, Any]:
        allocator = self.allocation.allocator()
        if allocator is None:
            raise InputError("allocation.policy is 'own'; give the name of an allocation policy")
        return allocator, self.placement.placer(allocator)


def measure(jobs: Sequence[Job], site: Site, places: Places) -> dict[str, Any]:
    """Return the paper's metrics of jobs that run together on these resources."""
    job_set = JobSet(jobs, site)
    outcome = job_set.simulate(places, occupancy=True)
    return {
        "mean_slowdown": outcome.mean_slowdown,
        "max_slowdown": outcome.max_slowdown,
        "rho_io": float(outcome.slowdown_io.mean()),
        "rho_con": float(outcome.slowdown_congestion.mean()),
        "spread": outcome.spread,
        "idle_time": outcome.idle_time,
        "bandwidth": outcome.bandwidth,
        "io_load": job_set.load(outcome.counts),
        "given": int(outcome.counts.sum()),
    }


def exceeds(figures: Mapping[str, Any], site: Site) -> bool:
    """Tell whether more resources were given than there are, so that jobs share them."""
    return bool(figures["given"] > site.resources)


@dataclass(frozen=True, slots=True, kw_only=True)
class DivisionTask:
    """Runs workloads under divisions, by name."""

    site: Site
    knowledge: Knowledge
    divisions: Mapping[str, Division]
    files: Mapping[str, PolicyFile] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        """The options of each pair of policies."""
        return {
            name: {"allocation": each.allocation.options, "placement": each.placement.options}
            for name, each in self.divisions.items()
        }

    def figures(self, workload: Workload, policy: str) -> dict[str, Any]:
        """Return the metrics of a division on a workload."""
        for file in self.files.values():
            file.check()
        check_curves(workload)
        known = list(workload.jobs(self.knowledge))
        try:
            return self.divisions[policy].figures(list(workload.jobs()), self.site, known)
        except InputError as error:
            raise InputError(f"{policy}: {error}") from error

    def missing(self, workload: Workload, policies: Iterable[str]) -> dict[str, str]:  # noqa: ARG002
        """Return nothing: all policies were named by the user, and each says what it lacks."""
        return {}

    def light(self, workload: Workload, policies: Sequence[str], workers: int) -> bool:  # noqa: ARG002
        """Return False: policies are Python, which threads do not make faster."""
        return len(policies) < 2


def check_curves(workload: Workload) -> None:
    """Raise InputError unless every job has a curve."""
    missing = [
        workload.id(j)
        for j in range(len(workload))
        if workload.curves is None or workload.curves[j] is None
    ]
    if missing:
        raise InputError(
            f"job {missing[0]!r} has no curve (its bandwidth by number of resources), without "
            "which allocations cannot be compared; 'penstock generate io-resources' draws jobs "
            "that have one"
        )
