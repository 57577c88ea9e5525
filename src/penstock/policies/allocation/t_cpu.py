"""t-cpu: start from n-sys and give more where compute nodes gain most, until I/O is saturated.

Algorithm 1 of paper io-resources. In each round every job looks for the next count that keeps the
I/O-load at or below one, and the job whose CPUload gains most gets it. Direct access is left out.

As printed, every job looks again in every round. Here a job looks again only when it got a count,
or when the I/O-load passed a value at which what it found would change, so that the time is nearly
linear in the number of jobs; the result is the same.

Option `strict`: as printed, the search inside a round compares with the count tried last, not with
the one the job has, so that on a curve that dips it may settle for less than it had. Strict
compares with what the job has.
"""

import heapq
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from penstock.model import JobId, View
from penstock.model.load import Options
from penstock.policies._support.counts import CurveAllocator


class TCpu(CurveAllocator):
    """Algorithm 1 (TCPU-Allocator)."""

    needs: ClassVar[frozenset[str]] = frozenset({"compute", "curve", "nodes", "volume"})
    goes_direct: ClassVar[bool] = False

    def __init__(self, *, measured: bool = False, strict: bool = False) -> None:
        super().__init__(measured=measured)
        self.strict = strict

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return a count for every job."""
        options = {name: self.options(job, view.site) for name, job in view.jobs.items()}
        jobs = [
            Candidate(o, resources=view.site.resources, strict=self.strict)
            for o in options.values()
        ]
        indices = Rounds(jobs, view.site.resources).run()
        counts = zip(options.items(), indices, strict=True)
        return {name: int(o.counts[index]) for (name, o), index in counts}


@lru_cache(maxsize=8192)
def _tables(
    o: Options,
) -> tuple[list[float], list[float], list[float | None], int, int]:
    """Return I/O-Stress and CPUload by index, the least stress after each, n_sys and n_perf.

    They are the same at every decision while a job runs.
    """
    stress: list[float] = o.stress.tolist()
    last = o.index(o.n_perf)
    least: list[float | None] = [None] * len(stress)
    for i in range(last - 1, -1, -1):
        after = least[i + 1]
        least[i] = stress[i + 1] if after is None else min(stress[i + 1], after)
    return stress, o.cpu.tolist(), least, o.index(o.n_sys), last


class Candidate:
    """A job: the count it has, and the next one that it would take at some I/O-load."""

    def __init__(self, o: Options, *, resources: int, strict: bool) -> None:
        self.stress, self._cpu, self._least_after, self.now, self._last = _tables(o)
        self._resources, self._strict = resources, strict
        self.looks = 0
        """How often it looked; what an earlier look found is void."""

    def look(self, load: float) -> tuple[int, float, float | None, float | None]:
        """Return the index of the next possible count and its gain in CPUload (below 0: none).

        Then, the largest rise in load that was tried and possible, and the least that was not: the
        answer stays until the first is impossible or the second possible.
        """
        self.looks += 1
        stress, cpu, tried = self.stress, self._cpu, self.now
        least = self._least_after[self.now]
        if least is None:
            return self.now, -1.0, None, None
        if load + (least_rise := (least - stress[self.now]) / self._resources) > 1:
            return self.now, -1.0, None, least_rise  # no count is possible
        fits: float | None = None
        exceeds: float | None = None
        for i in range(self.now + 1, self._last + 1):
            rise = (stress[i] - stress[self.now]) / self._resources
            if load + rise <= 1:
                fits = rise if fits is None else max(fits, rise)
                gain = cpu[i] - cpu[self.now if self._strict else tried]
                tried = i
                if gain >= 0:
                    return i, gain, fits, exceeds
            else:
                exceeds = rise if exceeds is None else min(exceeds, rise)
        return self.now, -1.0, fits, exceeds


class Rounds:
    """The rounds of Algorithm 1, with queues of the gains and of the loads that change them."""

    def __init__(self, jobs: Sequence[Candidate], resources: int) -> None:
        self._jobs, self._resources = jobs, resources
        # Exact, so that an updated sum equals that of all jobs, in any order.
        self._stress = sum((Fraction(job.stress[job.now]) for job in jobs), Fraction(0))
        self._gains: list[tuple[float, int, int, int]] = []
        self._fits: list[tuple[float, int, int]] = []
        self._exceeds: list[tuple[float, int, int]] = []

    def run(self) -> list[int]:
        """Return the index of each job's count."""
        for k in range(len(self._jobs)):
            self._look(k)
        while (best := self._best()) is not None:
            k, to = best
            job = self._jobs[k]
            self._stress += Fraction(job.stress[to]) - Fraction(job.stress[job.now])
            job.now = to
            self._look(k)
            self._look_again()
        return [job.now for job in self._jobs]

    @property
    def _load(self) -> float:
        return float(self._stress) / self._resources

    def _look(self, k: int) -> None:
        job = self._jobs[k]
        to, gain, fits, exceeds = job.look(self._load)
        if gain >= 0:
            heapq.heappush(self._gains, (-gain, k, to, job.looks))
        if fits is not None:
            heapq.heappush(self._fits, (-fits, k, job.looks))
        if exceeds is not None:
            heapq.heappush(self._exceeds, (exceeds, k, job.looks))

    def _best(self) -> tuple[int, int] | None:
        """Return the job that gains most, of equals the first, and its next count."""
        while self._gains:
            _, k, to, look = heapq.heappop(self._gains)
            if look == self._jobs[k].looks:
                return k, to
        return None

    def _look_again(self) -> None:
        """Let the jobs look again whose answer is another at the load of now."""
        load = self._load
        while self._fits and load + -self._fits[0][0] > 1:
            _, k, look = heapq.heappop(self._fits)
            if look == self._jobs[k].looks:
                self._look(k)
        while self._exceeds and load + self._exceeds[0][0] <= 1:
            _, k, look = heapq.heappop(self._exceeds)
            if look == self._jobs[k].looks:
                self._look(k)
