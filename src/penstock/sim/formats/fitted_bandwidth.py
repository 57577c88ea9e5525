"""The bandwidth that a record shows, and from it how long each phase would have taken alone.

A phase that nothing else transferred beside was alone: it took as long as it takes. Of the others
the bytes are known, and divided by the bandwidth that the job had alone; a job that never was alone
is taken to have been able to use the whole file system. What several transfers got together is
their bytes over the time that they had the file system for, by shares: half of the time that two
of them share. A phase never takes longer alone than it did.

Where turns are taken on I/O nodes, all of this is said of each of them: a phase on k of them uses k
times the bandwidth of one. File systems are no more alike than their names: each has a bandwidth of
its own, which phases on it alone show.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from penstock.model import JobId, ResourceId
from penstock.sim.formats.record_traces import Transfer
from penstock.sim.workload import Floats
from penstock.units import show_bandwidth

Bools = NDArray[np.bool_]

BEST = 0.1
"""The part of the bytes of phases alone that may have been faster than their "best" bandwidth: one
small phase into a cache is not the file system."""
TOLERANCE = 1.2
"""A declared bandwidth that is off by more than this factor is contradicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """What a file system gave, in bytes per second; None: the record does not show it."""

    alone: float | None = None
    """The best phase that nothing else transferred beside."""
    together: float | None = None
    """What phases got that were not alone, all together."""
    declared: float | None = None
    """site.bandwidth, as the controller was told."""

    @property
    def fitted(self) -> float | None:
        """What the file system can do, as far as the record shows it."""
        return max(filter(None, (self.alone, self.together)), default=None)

    @property
    def contradiction(self) -> str | None:
        """A sentence, if site.bandwidth is not what the record shows."""
        if self.fitted is None or self.declared is None:
            return None
        if 1 / TOLERANCE <= self.declared / self.fitted <= TOLERANCE:
            return None
        seen = {"best phase alone": self.alone, "phases together": self.together}
        shown = ", ".join(f"{what}: {show_bandwidth(b)}" for what, b in seen.items() if b)
        return (
            f"{shown}; you said {show_bandwidth(self.declared)} (site.bandwidth): "
            f"{show_bandwidth(self.fitted)} is used here"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """All transfers of a record as columns."""

    job: Sequence[JobId]
    start: Floats
    end: Floats
    bytes: Floats
    seconds: Floats
    weight: Floats
    held: Bools
    resources: Sequence[tuple[ResourceId, ...]]

    @classmethod
    def of(cls, transfers: Sequence[Transfer]) -> "Transfers":
        """Return the columns of these rows."""
        names = ("start", "end", "bytes", "seconds", "weight")
        columns = {name: np.array(list(map(attrgetter(name), transfers)), float) for name in names}
        held = np.array([transfer.held for transfer in transfers], np.bool_)
        return cls(
            job=[transfer.job for transfer in transfers],
            held=held,
            resources=[transfer.resources for transfer in transfers],
            **columns,
        )

    @property
    def counts(self) -> Floats:
        """How many resources each is on."""
        return np.array([max(len(each), 1) for each in self.resources], float)

    @property
    def alone(self) -> Bools:
        """Whether nothing else transferred on the same resource meanwhile."""
        alone = ~self.held
        for rows in self._by_resource():
            alone[rows] &= _undisturbed(self.start[rows], self.end[rows])
        return alone

    def served(self) -> Floats:
        """Return the seconds of whole resources that each had."""
        had: Floats = np.zeros(len(self.start))
        for rows in self._by_resource():
            had[rows] += served(self.start[rows], self.end[rows], self.weight[rows])
        return had

    def _by_resource(self) -> Iterator[NDArray[np.intp]]:
        """Yield the rows of the transfers on each resource."""
        rows: dict[ResourceId, list[int]] = {}
        for row, resources in enumerate(self.resources):
            for resource in resources:
                rows.setdefault(resource, []).append(row)
        return (np.array(each, np.intp) for each in rows.values())


def _undisturbed(start: Floats, end: Floats) -> Bools:
    """Return which of these transfers overlap with no other."""
    order = np.argsort(start, kind="stable")
    before = np.concatenate(([-np.inf], np.maximum.accumulate(end[order])[:-1]))
    after = np.concatenate((start[order][1:], [np.inf]))
    alone: Bools = np.empty(len(order), np.bool_)
    alone[order] = (before <= start[order]) & (end[order] <= after)
    return alone


def served(start: Floats, end: Floats, weight: Floats) -> Floats:
    """Return the seconds of a whole resource that transfers had, which share it by weight."""
    times = np.concatenate((start, end))
    change = np.concatenate((weight, -weight))
    order = np.argsort(times, kind="stable")
    times = times[order]
    total = np.maximum(np.cumsum(change[order])[:-1], float(weight.min()) / 2)
    clock = np.concatenate(([0.0], np.cumsum(np.diff(times) / total)))
    passed: Floats = np.interp(end, times, clock) - np.interp(start, times, clock)
    return weight * passed


def fit(
    transfers: Transfers, declared: float | None, *, on: ResourceId | None = None
) -> tuple[Bandwidth, dict[JobId, float]]:
    """Return the bandwidth of one resource, and that of each job that was alone.

    `on`: by the transfers on this resource alone; else resources are alike.
    """
    if not len(transfers.job):
        return Bandwidth(declared=declared), {}
    known = (transfers.bytes > 0) & (transfers.seconds > 0)
    if on is not None:
        known &= np.array([each == (on,) for each in transfers.resources], np.bool_)
    alone = known & transfers.alone
    together = known & ~alone
    had = transfers.served()[together].sum()
    resource_seconds = transfers.seconds * transfers.counts
    bandwidth = Bandwidth(
        alone=_best(transfers.bytes[alone], resource_seconds[alone]),
        together=float(transfers.bytes[together].sum() / had) if had else None,
        declared=declared,
    )
    moved: dict[JobId, list[float]] = {}
    for place in np.flatnonzero(alone).tolist():
        totals = moved.setdefault(transfers.job[place], [0.0, 0.0])
        totals[0] += float(transfers.bytes[place])
        totals[1] += float(transfers.seconds[place])
    return bandwidth, {job: bytes_ / seconds for job, (bytes_, seconds) in moved.items()}


def _best(moved: Floats, seconds: Floats) -> float | None:
    if not len(moved):
        return None
    order = np.argsort(-moved / seconds, kind="stable")
    place = int(np.searchsorted(np.cumsum(moved[order]), BEST * moved.sum()))
    return float((moved / seconds)[order[place]])
