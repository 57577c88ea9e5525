"""Policies that divide the bandwidth at every event: any shares, not only those of an order.

Such a policy looks at all the phases under way at once. It says which share each gets, and the base
class says it in the terms of every host: jobs with a share transfer, weighted by it, and the others
wait. The phases under way are known from the events that the policy observes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.model import (
    Event,
    Job,
    JobEnded,
    JobId,
    PhaseBegan,
    PhaseEnded,
    Request,
    ResourceId,
    View,
    Woke,
)
from penstock.policies._support.left import check, left
from penstock.policies.base import ByArrival

NO_SHARE = 1e-6
"""The weight of a job that has no share, where the others leave bandwidth unused."""
SOONEST = 1e-6
"""The seconds that a phase has left, at least: it has not ended yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseAhead:
    """A phase under way, and what its job's yield (progress over age) will be."""

    job: Job
    age: float
    progress: float
    left: float
    """The isolated seconds that the phase is taken to have left."""

    @property
    def limit(self) -> float:
        """The largest share that it can use."""
        return self.job.max_share

    def yield_after(self, seconds: float, share: float = 0.0) -> float:
        """Return the job's yield after it has had a share for these seconds; zero at age zero."""
        age = self.age + seconds
        return (self.progress + share / self.limit * seconds) / age if age > 0 else 0.0


class Division(ByArrival):
    """One group, divided again at every event: derive from it, and write `divide`.

    All phases are taken to share one resource. Where there are several, each is divided among its
    own jobs in the same proportions.
    """

    preemptive: ClassVar[bool] = True
    dynamic: ClassVar[bool] = True
    reweighs: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"progress", "remaining"})

    def __init__(self, *, hedge: float = 0.2, unknown: float = 100.0) -> None:
        check(type(self).__name__, hedge=hedge, unknown=unknown)
        self.hedge, self.unknown = hedge, unknown
        self._requests: dict[JobId, Request] = {}
        self._open: dict[JobId, set[ResourceId]] = {}
        self._shares: dict[JobId, float] = {}

    def divide(self, phases: Sequence[PhaseAhead], now: float) -> Sequence[float]:
        """Return the share of each phase, at most its limit, all together at most one."""
        raise NotImplementedError

    def group(self, job: Job) -> str:  # noqa: ARG002
        """Return the one group there is."""
        return "all"

    def turn(self, request: Request, view: View) -> float:  # noqa: ARG002
        """Return the request's share, negative: those that have one come first."""
        return -self._shares.get(request.job.id, 0.0)

    def weight(self, job: Job) -> float:
        """Return the job's share."""
        return max(self._shares.get(job.id, 0.0), NO_SHARE)

    def observe(self, event: Event, view: View) -> float | None:
        """Divide the bandwidth among the phases that are under way now."""
        match event:
            case PhaseBegan(job=job, resources=resources) if resources:
                self._requests[job] = Request(
                    job=view.jobs[job], arrival=event.time, resources=resources, io=event.io
                )
                self._open[job] = set(resources)
            case PhaseEnded(job=job, resource=resource) if job in self._open:
                self._open[job].discard(resource)
                if not self._open[job]:
                    del self._open[job], self._requests[job]
            case JobEnded(job=job):
                self._open.pop(job, None)
                self._requests.pop(job, None)
            case Woke():
                pass
            case _:
                return None
        phases = [self._ahead(request, view) for request in self._requests.values()]
        shares = self.divide(phases, view.now) if phases else ()
        self._shares = {p.job.id: share for p, share in zip(phases, shares, strict=True)}
        self.places = max(1, sum(share > 0 for share in shares))
        return None

    def _ahead(self, request: Request, view: View) -> PhaseAhead:
        rest = left(request, view, hedge=self.hedge, unknown=self.unknown)
        return PhaseAhead(
            job=request.job,
            age=view.age(request.job),
            progress=view.progress(request.job),
            left=max(rest, SOONEST),
        )


def in_order(phases: Sequence[PhaseAhead], order: Sequence[int]) -> list[float]:
    """Give each phase of an order all that it can use, until the bandwidth is used up."""
    shares, rest = [0.0] * len(phases), 1.0
    for k in order:
        shares[k] = min(phases[k].limit, rest)
        rest -= shares[k]
    return shares
