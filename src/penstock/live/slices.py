"""Shares of jobs that go past the I/O nodes, as time at the gate.

Stride scheduling (Waldspurger and Weihl, 1995): every slice goes to the job that has had least of
its share, a job's slices count inversely to its weight. Cooperative, as all that gates do.
"""

from collections.abc import Mapping

from penstock.model import JobId

SECONDS = 0.02
"""A slice: long against a turn's way, short against a phase."""


class Slices:
    """Who of several direct jobs transfers in the next slice."""

    def __init__(self) -> None:
        self._weights: dict[JobId, float] = {}
        self._passes: dict[JobId, float] = {}

    def share(self, weights: Mapping[JobId, float]) -> bool:
        """Take part: these jobs, by weight; say whether slices are needed to keep their shares."""
        # Who comes later has no claim on what went before.
        now = min((self._passes[job] for job in self._passes if job in weights), default=0.0)
        self._passes = {job: self._passes.get(job, now) for job in weights}
        self._weights = dict(weights)
        return len(set(weights.values())) > 1

    def next(self) -> JobId:
        """Give the next slice away."""
        job = min(self._passes, key=lambda job: (self._passes[job], job))
        self._passes[job] += 1 / self._weights[job]
        return job
