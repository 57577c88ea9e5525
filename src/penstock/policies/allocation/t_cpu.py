"""t-cpu: start from n-sys and give more where compute nodes gain most, until I/O is saturated.

Algorithm 1 of paper io-resources. In each round every job looks for the next count that keeps the
I/O-load at or below one, and the job whose CPUload gains most gets it. Direct access is left out.

Option `strict`: as printed, the search inside a round compares with the count tried last, not with
the one the job has, so that on a curve that dips it may settle for less than it had. Strict
compares with what the job has.
"""

from collections.abc import Mapping
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
        at = {name: o.index(o.n_sys) for name, o in options.items()}
        resources = view.site.resources
        while True:
            load = sum(options[name].stress[i] for name, i in at.items()) / resources
            best, best_gain = None, -1.0
            for name, o in options.items():
                step, gain = self._next(o, at[name], load, resources)
                if gain > best_gain:
                    best, best_step, best_gain = name, step, gain
            if best is None or best_gain < 0 or best_step == at[best]:
                return {name: int(options[name].counts[i]) for name, i in at.items()}
            at[best] = best_step

    def _next(self, o: Options, now: int, load: float, resources: int) -> tuple[int, float]:
        """Return the index of the job's next possible count, and the gain in CPUload."""
        last, gain = now, -1.0
        for i in range(now + 1, o.index(o.n_perf) + 1):
            if load + (o.stress[i] - o.stress[now]) / resources <= 1:
                gain = float(o.cpu[i] - o.cpu[now if self.strict else last])
                last = i
                if gain >= 0:
                    break
        return last, gain
