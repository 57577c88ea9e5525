"""Which resources the jobs that do I/O have, and how many such jobs each resource has ever had."""

from collections import Counter
from collections.abc import Mapping, Sequence

from penstock.model import JobId, ResourceId

FRESH = 2.0
"""Seconds after its start for which a job without I/O may still be one that does I/O."""


class Spread:
    """Follows which jobs do I/O: one without any must not shift those that do it.

    A host that does not tell of phases (`hears_phases`) has jobs that all do I/O.
    """

    def __init__(self, *, hears_phases: bool) -> None:
        self.users: set[JobId] = set()
        """Running jobs that have begun a phase."""
        self._hears_phases = hears_phases
        self._started: dict[JobId, float] = {}
        self._ever: Counter[ResourceId] = Counter()

    def started(self, job: JobId, now: float) -> None:
        """Note a new job."""
        self._started[job] = now

    def given(self, job: JobId, resources: Sequence[ResourceId]) -> None:
        """Note that a job gets resources."""
        if not self._hears_phases:
            self.begins_io(job, resources)

    def begins_io(self, job: JobId, resources: Sequence[ResourceId]) -> None:
        """Note that a job, with these resources, begins a phase."""
        if job not in self.users:
            self.users.add(job)
            self._ever.update(resources)

    def ended(self, job: JobId) -> None:
        """Forget a job, but not that its resources were used."""
        self.users.discard(job)
        self._started.pop(job, None)

    def order(
        self,
        usable: Sequence[ResourceId],
        assigned: Mapping[JobId, Sequence[ResourceId]],
        now: float,
    ) -> list[ResourceId]:
        """Return resources, those first that fewer jobs used, or may come to."""
        seldom = self._ever.copy()
        for job, resources in assigned.items():
            if job not in self.users and self._started[job] > now - FRESH:
                seldom.update(resources)
        return sorted(usable, key=lambda resource: (seldom[resource], resource))
