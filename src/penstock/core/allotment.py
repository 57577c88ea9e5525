"""What a job was given, and why: read by explain, status, metrics and the log."""

from dataclasses import dataclass
from typing import Literal

from penstock.model import Job, ResourceId
from penstock.model.job import PRIOR

Reason = Literal[
    "policy",
    "prior",
    "placed-by-load",
    "new",
    "unknown",
    "failed",
    "explored",
    "pinned",
    "unreachable",
]
"""Why a job has its resources.

policy: the allocation policy gave the count, the placement policy chose the resources.
prior: the same, from a curve that is, or is in part, that of the job's class: a prior.
placed-by-load: the same count; the placement policy could not choose, so the least loaded serve.
new: the job is younger than the settling time, and too little is known for the policy: one; or its
application's runs are shorter than that, or the application is unknown: one, or what none has.
unknown: too little is known for the policy: the fallback policy divides what the others leave.
failed: a policy raised an exception: the fallback policy decides for those that it was asked about,
and if that is the one that failed, they have one.
explored: a neighbouring count, to learn the job's bandwidth there.
pinned: the job, or a person, asked for these resources.
unreachable: no resource that the job can reach is up; it has none, or keeps what it had.
"""
REASONS: tuple[Reason, ...] = Reason.__args__  # type: ignore[attr-defined]
DECIDED = frozenset({"policy", "prior"})
"""Reasons for which both of the site's policies decided."""
FALLBACKS = frozenset({"placed-by-load", "new", "unknown", "failed", "unreachable"})
"""Reasons for which the site's policies did not decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """The resources of a job; `since` when it has had them for this reason."""

    resources: tuple[ResourceId, ...]
    reason: Reason
    since: float
    lacks: tuple[str, ...] = ()
    """What a policy needs to know of the job and is not known."""
    error: str = ""
    """What a policy raised."""
    by_default: bool = False
    """The fallback policy failed, too."""


def by_prior(job: Job, policy: object) -> bool:
    """Tell whether a policy uses a curve of the job that is, in part, a prior."""
    needs: frozenset[str] = getattr(policy, "needs", frozenset())
    return PRIOR in job.hints and bool(needs & {"curve", "best-count"})


def lacking(job: Job, policy: object, resources: int, *, direct: bool) -> tuple[str, ...]:
    """Return what a policy needs to know of a job on a number of resources and is not known.

    A policy with a class attribute `least_points` needs a curve of that many counts. One that says
    nothing of any count that the job can have is no curve.
    """
    needs: frozenset[str] = getattr(policy, "needs", frozenset())
    if not needs:
        return ()
    points = possible = 0
    if job.curve is not None and needs & {"curve", "best-count"}:
        counts = job.curve.counts if direct else job.curve.forwarded
        points, possible = len(counts), bool(counts) and counts[0] <= resources
    unknown = {
        "best-count": not possible,
        "compute": job.compute is None,
        "curve": not possible or points < getattr(policy, "least_points", 1),
        "processes": job.processes is None,
        "volume": job.volume is None,
        "w_iter": job.w_iter is None,
    }
    return tuple(sorted(need for need in needs if unknown.get(need)))
