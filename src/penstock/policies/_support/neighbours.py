"""Small changes to an allocation and placement, for a search among them.

Changes are drawn where they are most promising: jobs that lose most, resources that are fullest.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.model import ResourceId
from penstock.model.load import Options

Floats = NDArray[np.float64]
Places = tuple[tuple[ResourceId, ...], ...]
"""Every job's resources, each in rising order."""
AT_RANDOM = 0.3
"""Fraction of the draws without guidance, so that everything can be reached."""
FEW = 4
"""A job is moved to one of this many of the emptiest resources."""


class Neighbours:
    """Draws neighbours of a placement; with `fixed`, counts do not change."""

    def __init__(
        self,
        options: Sequence[Options],
        *,
        resources: int,
        rng: np.random.Generator,
        fixed: bool = False,
    ) -> None:
        self._options = options
        self._resources = resources
        self._rng = rng
        self._fixed = fixed
        self._ratio = [
            dict(zip(o.counts.tolist(), o.stress / o.counts, strict=True)) for o in options
        ]

    def draw(self, places: Places, hurt: Floats) -> Places | None:
        """Return a neighbour, or None if the drawn change is not possible."""
        load = self.load(places)
        job = self._job(hurt)
        kind = self._rng.random()
        if not self._fixed and kind < 0.5:
            return self._resize(places, job, load)
        if kind < 0.8:
            return self._move(places, job, load)
        return self._swap(places, job)

    def load(self, places: Places) -> Floats:
        """Return how busy each resource would be without congestion."""
        load = [0.0] * self._resources
        for ratio, where in zip(self._ratio, places, strict=True):
            for r in where:
                load[r] += ratio[len(where)]
        return np.array(load)

    def _job(self, hurt: Floats) -> int:
        total = hurt.sum()
        if self._rng.random() < AT_RANDOM or not total > 0:
            return int(self._rng.integers(len(hurt)))
        return int(self._rng.choice(len(hurt), p=hurt / total))

    def _resize(self, places: Places, job: int, load: Floats) -> Places | None:
        """Give the job the next larger or smaller count, sometimes any other."""
        counts, where = self._options[job].counts, list(places[job])
        if len(counts) < 2:
            return None
        at = self._options[job].index(len(where))
        far = self._rng.random() < AT_RANDOM
        step = int(self._rng.integers(1, len(counts))) if far else 1
        to = (at + (step if self._rng.random() < 0.5 else -step)) % len(counts)
        count = int(counts[to])
        # Noise breaks ties: many resources may be empty.
        by_load = np.argsort(load + 1e-9 * self._rng.random(self._resources)).tolist()
        stay = [r for r in by_load if r in where][:count]
        add = [r for r in by_load if r not in where][: count - len(stay)]
        return _with(places, {job: stay + add})

    def _move(self, places: Places, job: int, load: Floats) -> Places | None:
        """Move the job, or another one of its fullest resource, to an emptier resource."""
        where = places[job]
        fullest = max(where, key=lambda r: load[r])
        beside = [k for k, others in enumerate(places) if fullest in others]
        moved = job if self._rng.random() < 0.5 else int(self._rng.choice(beside))
        free = [r for r in np.argsort(load).tolist() if r not in places[moved]][:FEW]
        if not free:
            return None
        to = int(self._rng.choice(free))
        return _with(places, {moved: [r for r in places[moved] if r != fullest] + [to]})

    def _swap(self, places: Places, job: int) -> Places | None:
        """Exchange one resource of the job with one of another job."""
        other = int(self._rng.integers(len(places)))
        mine = [r for r in places[job] if r not in places[other]]
        others = [r for r in places[other] if r not in places[job]]
        if not mine or not others:
            return None
        a, b = int(self._rng.choice(mine)), int(self._rng.choice(others))
        return _with(
            places,
            {
                job: [r for r in places[job] if r != a] + [b],
                other: [r for r in places[other] if r != b] + [a],
            },
        )


def _with(places: Places, changed: dict[int, list[int]]) -> Places:
    return tuple(
        tuple(sorted(changed[j])) if j in changed else where for j, where in enumerate(places)
    )
