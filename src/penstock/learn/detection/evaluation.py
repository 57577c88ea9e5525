"""How good a model is on observations whose pattern is known.

An I/O node with one client cannot distinguish that client's own file from its part of a shared one:
the requests are the same. Scores are therefore given for runs with several clients per I/O node, as
all of the thesis' were, beside those of all runs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.learn.detection.model import Detected, Model
from penstock.learn.detection.samples import OffGridSample, Sample
from penstock.model import Observation
from penstock.model.observation import PATTERNS, UNKNOWN

Classifier = Callable[[Observation], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The confusion matrix: predicted classes in columns, true ones in rows, in PATTERNS' order.

    `unknown` counts, per class, observations without a prediction; the matrix excludes them.
    """

    matrix: tuple[tuple[int, ...], ...]
    unknown: tuple[int, ...]

    @property
    def answered(self) -> int:
        """Return the number of predictions."""
        return sum(map(sum, self.matrix))

    @property
    def observations(self) -> int:
        """Return the number of observations."""
        return self.answered + sum(self.unknown)

    @property
    def right(self) -> int:
        """Return the number of correct predictions."""
        return sum(row[k] for k, row in enumerate(self.matrix))

    @property
    def accuracy(self) -> float:
        """Return the fraction of predictions that are correct."""
        return _part(self.right, self.answered)

    @property
    def coverage(self) -> float:
        """Return the fraction of observations with a prediction."""
        return _part(self.answered, self.observations)

    @property
    def kappa(self) -> float:
        """Return Cohen's kappa: the improvement over guessing by the classes' shares."""
        predicted = [sum(column) for column in zip(*self.matrix, strict=True)]
        actual = [sum(row) for row in self.matrix]
        whole = self.answered
        chance = _part(sum(a * b for a, b in zip(predicted, actual, strict=True)), whole * whole)
        return 1.0 if chance == 1 else (self.accuracy - chance) / (1 - chance)

    @property
    def sensitivity(self) -> tuple[float, ...]:
        """Return, per class, the fraction of its observations that were recognised."""
        return tuple(_part(row[k], sum(row)) for k, row in enumerate(self.matrix))

    @property
    def specificity(self) -> tuple[float, ...]:
        """Return, per class, the fraction of the others that were not taken for it."""
        result = []
        for k in range(len(self.matrix)):
            others = [row for j, row in enumerate(self.matrix) if j != k]
            result.append(_part(sum(sum(row) - row[k] for row in others), sum(map(sum, others))))
        return tuple(result)


def _part(some: int, whole: int) -> float:
    return some / whole if whole else 0.0


def scores(samples: Iterable[Sample], classify: Classifier) -> Scores:
    """Return the scores of a classifier on samples."""
    place = {pattern: k for k, pattern in enumerate(PATTERNS)}
    matrix = [[0] * len(PATTERNS) for _ in PATTERNS]
    unknown = [0] * len(PATTERNS)
    for one in samples:
        row, prediction = place[one.pattern], classify(one.observation)
        if prediction == UNKNOWN:
            unknown[row] += 1
        else:
            matrix[row][place[prediction]] += 1  # type: ignore[index]
    return Scores(matrix=tuple(map(tuple, matrix)), unknown=tuple(unknown))


def model_scores(model: Model, samples: Iterable[Sample]) -> Scores:
    """Return the scores of what a model has learnt, "unknown" included."""
    return scores(samples, lambda observation: model.classify(observation).pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffGridScores:
    """The answers for one kind of access that no model was trained with.

    For an access in no class, only "unknown" is appropriate.
    """

    kind: str
    pattern: str
    right: int
    unknown: int
    wrong: int


def off_grid_scores(
    samples: Iterable[OffGridSample], detect: Callable[[Observation], Detected]
) -> list[OffGridScores]:
    """Return the scores of what is detected by kind, in the order of the samples."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for one in samples:
        answer = detect(one.observation).pattern
        counts.setdefault((one.kind, one.pattern), Counter())[
            UNKNOWN if answer == UNKNOWN else "right" if answer == one.pattern else "wrong"
        ] += 1
    return [
        OffGridScores(
            kind=kind,
            pattern=pattern,
            right=count["right"],
            unknown=count[UNKNOWN],
            wrong=count["wrong"],
        )
        for (kind, pattern), count in counts.items()
    ]


def several_clients(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples of runs with more than one client per I/O node."""
    return [one for one in samples if one.processes > one.io_nodes]
