"""Chooses a neighbouring count of resources for a job now and then, to learn its curve there.

Bandwidths are learnt only at counts that a job has had. While other jobs have few, a job that
begins gets a power of two (or all resources) next to a count at which its curve has a point,
instead of what its policy gave, if the curve has none there. So the curve grows in both directions,
also past counts that are worse: paper forwarding has curves that fall and rise again. Each count of
an application is tried a bounded number of times, whether or not a bandwidth was learnt from it.
"""

from collections import Counter

import numpy as np

from penstock.model import Job

EXPLORE = "explore"
"""The hint of a job whose count may be varied to learn its curve."""
LOW_LOAD = 0.5
"""The part of the resources that other jobs may have."""
TRIES = 3
"""Jobs of an application that are given the same count to learn from."""


class Explorer:
    """Neighbouring counts, chosen by the seed and the job alone."""

    def __init__(self, *, seed: int = 0, tries: int = TRIES) -> None:
        self.seed, self.tries = seed, tries
        self._tried: Counter[tuple[str, str, int, int]] = Counter()

    def choose(self, job: Job, count: int, *, others: int, room: int, resources: int) -> int | None:
        """Return the count to try instead of `count`, at most `room`.

        `others` is how many of all resources other jobs have.
        """
        own = job.own_curve  # a prior is there to be replaced
        points = () if own is None else own.counts
        if count not in points or others > LOW_LOAD * resources:
            return None
        next_to_known = {n for point in points for n in _neighbours(point, resources)}
        candidates = [
            n
            for n in sorted(next_to_known.difference(points))
            if n <= room and self._tried[_key(job, n)] < self.tries
        ]
        if not candidates:
            return None
        draw = np.random.default_rng([self.seed, max(job.serial, 0)])
        chosen = candidates[int(draw.integers(len(candidates)))]
        self._tried[_key(job, chosen)] += 1
        return chosen


def _key(job: Job, count: int) -> tuple[str, str, int, int]:
    """Return the application and the count."""
    return job.user, job.executable, job.nodes, count


def _neighbours(count: int, most: int) -> list[int]:
    """Return the powers of two next to a count, and at most all resources."""
    if count < 1:
        return [1]
    below = 1 << (count - 1).bit_length() >> 1
    above = min(1 << count.bit_length(), most)
    return [n for n in (below, above) if n >= 1 and n != count]
