"""How good a model is: what it says of observations whose pattern is known.

An I/O node with one client cannot tell that client's own file from its part of a shared one: the
requests are the same. Figures are therefore given of runs with several clients an I/O node, as all
of the thesis' were, beside those of all runs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.learn.detection.model import UNKNOWN, Model
from penstock.learn.detection.samples import Sample
from penstock.model import Observation
from penstock.model.observation import PATTERNS

Tells = Callable[[Observation], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Counts of what was said (columns) of what was there (rows), classes in PATTERNS' order.

    `unknown` counts, a class, where nothing was said; it is no part of the matrix.
    """

    matrix: tuple[tuple[int, ...], ...]
    unknown: tuple[int, ...]

    @property
    def answered(self) -> int:
        """Return of how many observations something was said."""
        return sum(map(sum, self.matrix))

    @property
    def observations(self) -> int:
        """Return of how many something was asked."""
        return self.answered + sum(self.unknown)

    @property
    def right(self) -> int:
        """Return how often what was said is so."""
        return sum(row[k] for k, row in enumerate(self.matrix))

    @property
    def accuracy(self) -> float:
        """Return the part of what was said that is right."""
        return _part(self.right, self.answered)

    @property
    def coverage(self) -> float:
        """Return the part of the observations of which something was said."""
        return _part(self.answered, self.observations)

    @property
    def kappa(self) -> float:
        """Return Cohen's kappa: by how much it is better than guessing by the classes' shares."""
        said = [sum(column) for column in zip(*self.matrix, strict=True)]
        there = [sum(row) for row in self.matrix]
        whole = self.answered
        chance = _part(sum(a * b for a, b in zip(said, there, strict=True)), whole * whole)
        return 1.0 if chance == 1 else (self.accuracy - chance) / (1 - chance)

    @property
    def sensitivity(self) -> tuple[float, ...]:
        """Return the part of a class that was said to be of it; class by class."""
        return tuple(_part(row[k], sum(row)) for k, row in enumerate(self.matrix))

    @property
    def specificity(self) -> tuple[float, ...]:
        """Return the part of the others that was not said to be of a class; class by class."""
        found = []
        for k in range(len(self.matrix)):
            others = [row for j, row in enumerate(self.matrix) if j != k]
            found.append(_part(sum(sum(row) - row[k] for row in others), sum(map(sum, others))))
        return tuple(found)


def _part(some: int, whole: int) -> float:
    return some / whole if whole else 0.0


def scores(samples: Iterable[Sample], tell: Tells) -> Scores:
    """Return how good what `tell` says of the samples is."""
    place = {pattern: k for k, pattern in enumerate(PATTERNS)}
    matrix = [[0] * len(PATTERNS) for _ in PATTERNS]
    unknown = [0] * len(PATTERNS)
    for one in samples:
        row, said = place[one.pattern], tell(one.observation)
        if said == UNKNOWN:
            unknown[row] += 1
        else:
            matrix[row][place[said]] += 1  # type: ignore[index]
    return Scores(matrix=tuple(map(tuple, matrix)), unknown=tuple(unknown))


def of_model(model: Model, samples: Iterable[Sample]) -> Scores:
    """Return how good a model is, "unknown" included."""
    return scores(samples, lambda seen: model.detect(seen).pattern)


def several_clients(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples of runs with more than one client an I/O node."""
    return [one for one in samples if one.processes > one.io_nodes]
