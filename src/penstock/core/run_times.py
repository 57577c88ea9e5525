"""How long the runs of an application take: those known to be short move no other job.

A short job is over before others have gained from what it took, or from what it left (paper
forwarding, Section 5.7: short jobs are not eligible).
"""

import statistics

from penstock.model import Job

RUNS = 3
"""Runs of an application that are kept, the newest."""
MOST = 4096
"""Applications that are kept; beyond, the one that ended longest ago is dropped."""
_Application = tuple[str, str, int]


class RunTimes:
    """The newest run times of applications, in seconds."""

    def __init__(self) -> None:
        self._seconds: dict[_Application, tuple[float, ...]] = {}

    def ended(self, job: Job, seconds: float) -> None:
        """Note how long a job ran; one without an executable is of no application."""
        if not job.executable:
            return
        key = _application(job)
        before = self._seconds.pop(key, ())
        if len(self._seconds) >= MOST:
            del self._seconds[next(iter(self._seconds))]
        self._seconds[key] = (*before, seconds)[-RUNS:]

    def is_shorter(self, job: Job, than: float) -> bool:
        """Tell whether the runs of a job's application are known to be shorter, by their median."""
        seconds = self._seconds.get(_application(job)) if job.executable else None
        return seconds is not None and statistics.median(seconds) < than


def _application(job: Job) -> _Application:
    return job.user, job.executable, job.nodes
