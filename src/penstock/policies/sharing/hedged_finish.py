"""hedged-finish: the phase nearest its end, by an estimate that is never trusted once overdue.

greedy-com and fair-finish need to know how long phases are, and a live site knows it roughly: a
phase that lasts longer than expected then goes before all others until it ends. This policy of ours
takes an overdue phase to have a part of what it has done still to go, so that a wrong estimate
costs little, and prefers jobs that do little I/O for their work, which compute the more:

    turn = max(expected - done, hedge x done) x io_done / progress x yield^fairness

In `penstock reproduce io-sets` it is compared with set-10, greedy-com and fair-finish at equal
knowledge, on an ideal site. A live one sees the ends of phases late, and the file system is idle
until then: `penstock compare jobs.json --seeds 8 --policies fair-share,set-10,hedged-finish
--knowledge learned --as-live` (jobs of `penstock generate io-sets --jobs 20 --horizon 4000`) has
-0.92% [-1.34, -0.50] utilization relative to fair-share, and +2.04% for set-10. Related: Benoit
et al., JPDC 2024 (greedy-com, greedy-yield).

Options: `fairness`, how much a job that fell behind comes before others; `hedge` and `unknown`, as
in greedy-com.
"""

from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, Request, View
from penstock.policies._support.left import check, left
from penstock.policies.base import ByArrival

LEAST_RATIO = 0.001
"""The smallest ratio of I/O to work: a job that has done no I/O yet has no head start for ever."""


class HedgedFinish(ByArrival):
    """One group, re-chosen at every event by hedged remaining I/O, I/O ratio and yield."""

    preemptive: ClassVar[bool] = True
    in_order: ClassVar[bool] = True
    dynamic: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"progress", "remaining"})

    def __init__(
        self, *, fairness: float = 50.0, hedge: float = 0.2, unknown: float = 100.0
    ) -> None:
        if not 0 <= fairness <= 1e6:
            raise InputError(f"hedged-finish: fairness is {fairness:g}; give 0 to 1e6")
        check("hedged-finish", hedge=hedge, unknown=unknown)
        self.fairness, self.hedge, self.unknown = fairness, hedge, unknown

    def group(self, job: Job) -> str:  # noqa: ARG002
        """Return the one group there is."""
        return "all"

    def turn(self, request: Request, view: View) -> float:
        """Return what the request has left, times its job's I/O ratio and a power of its yield."""
        job = request.job
        age, progress = view.age(job), view.progress(job)
        ratio = max(view.io_done(job) / progress, LEAST_RATIO) if progress > 0 else LEAST_RATIO
        job_yield = progress / age if age > 0 else 1.0
        rest = left(request, view, hedge=self.hedge, unknown=self.unknown)
        return float(rest * ratio * job_yield**self.fairness)
