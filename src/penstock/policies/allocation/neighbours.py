"""Small changes to an allocation and placement, for a search among them.

A change is drawn where it promises most: jobs that are hurt most, resources that are fullest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.model import ResourceId
from penstock.model.load import Options

Floats = NDArray[np.float64]
Places = tuple[tuple[ResourceId, ...], ...]
"""Every job's resources, each in rising order."""
AT_RANDOM = 0.3
"""Part of the draws that follow no guidance, so that nothing is out of reach."""
FEW = 4
"""A job is moved to one of so many of the emptiest resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Draws neighbours of a placement; with `fixed`, such that all counts stay as they are."""

    options: Sequence[Options]
    resources: int
    rng: np.random.Generator
    fixed: bool = False

    def draw(self, places: Places, hurt: Floats) -> Places | None:
        """Return a neighbour, or None where the draw led to none."""
        load = self.load(places)
        job = self._job(hurt)
        kind = self.rng.random()
        if not self.fixed and kind < 0.5:
            return self._resize(places, job, load)
        if kind < 0.8:
            return self._move(places, job, load)
        return self._swap(places, job)

    def load(self, places: Places) -> Floats:
        """Return how busy each resource would be, were there no congestion."""
        load = np.zeros(self.resources)
        for o, where in zip(self.options, places, strict=True):
            load[list(where)] += o.stress[o.index(len(where))] / len(where)
        return load

    def _job(self, hurt: Floats) -> int:
        total = hurt.sum()
        if self.rng.random() < AT_RANDOM or not total > 0:
            return int(self.rng.integers(len(hurt)))
        return int(self.rng.choice(len(hurt), p=hurt / total))

    def _resize(self, places: Places, job: int, load: Floats) -> Places | None:
        """Give the job the next larger or smaller count, at times any other."""
        counts, where = self.options[job].counts, list(places[job])
        if len(counts) < 2:
            return None
        at = self.options[job].index(len(where))
        far = self.rng.random() < AT_RANDOM
        step = int(self.rng.integers(1, len(counts))) if far else 1
        to = (at + (step if self.rng.random() < 0.5 else -step)) % len(counts)
        count = int(counts[to])
        # Noise breaks ties, of which empty resources have many.
        by_load = np.argsort(load + 1e-9 * self.rng.random(self.resources)).tolist()
        kept = [r for r in by_load if r in where][:count]
        added = [r for r in by_load if r not in where][: count - len(kept)]
        return _with(places, {job: kept + added})

    def _move(self, places: Places, job: int, load: Floats) -> Places | None:
        """Take the job, or one beside it, from its fullest resource to an emptier one."""
        where = places[job]
        fullest = max(where, key=lambda r: load[r])
        beside = [k for k, others in enumerate(places) if fullest in others]
        moved = job if self.rng.random() < 0.5 else int(self.rng.choice(beside))
        free = [r for r in np.argsort(load).tolist() if r not in places[moved]][:FEW]
        if not free:
            return None
        to = int(self.rng.choice(free))
        return _with(places, {moved: [r for r in places[moved] if r != fullest] + [to]})

    def _swap(self, places: Places, job: int) -> Places | None:
        """Let the job and another exchange a resource each."""
        other = int(self.rng.integers(len(places)))
        mine = [r for r in places[job] if r not in places[other]]
        theirs = [r for r in places[other] if r not in places[job]]
        if not mine or not theirs:
            return None
        a, b = int(self.rng.choice(mine)), int(self.rng.choice(theirs))
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
