"""What is learnt during a run is used in it: tells which running jobs are known better by now.

That is the case when their application's curve gets a point, or something becomes known that was
not, and when a job has been explored with for long enough. So it happens a few times in a job's
life, however many phases it has.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from penstock.core.arbiter import Arbiter
from penstock.core.explorer import EXPLORE
from penstock.learn.observations import ObservedPhase
from penstock.live.controller.core_inputs import refreshed
from penstock.live.controller.job_table import JobEntry
from penstock.live.store import Knowledge
from penstock.model import Job, JobId

EXPLORED_PHASES = 3
"""Phases at a count that is explored, after which the policies decide again."""
Recall = Callable[[JobEntry], Knowledge | None]


class FreshKnowledge:
    """Follows the phases of jobs; `recall` returns what is known of a job's application now."""

    def __init__(
        self,
        arbiter: Arbiter,
        jobs: Mapping[JobId, Job],
        entry: Callable[[JobId], JobEntry],
        recall: Recall,
    ) -> None:
        self._arbiter, self._jobs, self._entry, self._recall = arbiter, jobs, entry, recall
        self._explored: Counter[JobId] = Counter()

    def ended(self, id: JobId) -> None:
        """A job is gone."""
        self._explored.pop(id, None)

    def observed(self, id: JobId, count: int, phase: ObservedPhase) -> tuple[Job, ...]:
        """Return the jobs of which more is known after a phase on a number of I/O nodes."""
        job = self._jobs[id]
        changed: dict[JobId, Job] = {}
        if _is_news(job, count, phase):
            changed = {other.id: other for other in self._refreshed(self._family(job))}
        if self._is_explored(id, count):
            hints = {name: hint for name, hint in job.hints.items() if name != EXPLORE}
            changed[id] = replace(changed.get(id, job), hints=hints)
        return tuple(changed.values())

    def _family(self, job: Job) -> list[Job]:
        family = job.user, job.executable, job.nodes
        jobs = self._jobs.values()
        return [other for other in jobs if (other.user, other.executable, other.nodes) == family]

    def _refreshed(self, jobs: Iterable[Job]) -> Iterable[Job]:
        for job in jobs:
            entry = self._entry(job.id)
            knowledge = self._recall(entry)
            if knowledge is not None:
                now = refreshed(job, entry.begin, knowledge)
                if now != job:
                    yield now

    def _is_explored(self, id: JobId, count: int) -> bool:
        """Tell whether a job has just been explored with for long enough."""
        allotment = self._arbiter.allotments.get(id)
        if allotment is None or allotment.reason != "explored" or len(allotment.resources) != count:
            return False
        self._explored[id] += 1
        return self._explored[id] == EXPLORED_PHASES


def _is_news(job: Job, count: int, phase: ObservedPhase) -> bool:
    """Tell whether a phase shows what was not known of its job."""
    own = job.own_curve
    point = phase.bandwidth is not None and (own is None or count not in own.counts)
    return point or job.volume is None or (job.compute is None and phase.compute is not None)
