"""A decision in the making: what jobs that divide the same resources get, and why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.core.allotment import Reason
from penstock.core.answers import Resources
from penstock.model import JobId


@dataclass(slots=True)
class Decision:
    """What was decided for jobs that divide the same resources."""

    reasons: dict[JobId, Reason] = field(default_factory=dict)
    counts: dict[JobId, int] = field(default_factory=dict)
    places: dict[JobId, Resources] = field(default_factory=dict)
    lacks: dict[JobId, tuple[str, ...]] = field(default_factory=dict)
    errors: dict[JobId, str] = field(default_factory=dict)
    """What a policy raised when it was asked about these jobs."""
    defaults: set[JobId] = field(default_factory=set)
    """Jobs that have one because the fallback policy failed, too."""

    def give(self, counts: Mapping[JobId, int], reason: Reason) -> None:
        """Give jobs these counts for a reason."""
        self.counts |= counts
        self.reasons |= dict.fromkeys(counts, reason)

    def failed(self, jobs: Iterable[JobId], error: str) -> None:
        """Note what a policy raised about jobs."""
        self.errors |= dict.fromkeys(jobs, error)

    def decides(self, job: JobId) -> bool:
        """Tell whether a job has a count of its own, and not a share of what others leave."""
        return self.reasons[job] not in ("new", "unknown", "failed")
