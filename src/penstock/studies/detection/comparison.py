"""Models of all kinds, made of the same observations and held against those never seen."""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.campaign.sizes import Size
from penstock.learn.detection import evaluation, selection, training
from penstock.learn.detection import model as models
from penstock.learn.detection import samples as files
from penstock.learn.detection.evaluation import Scores
from penstock.learn.detection.features import THESIS
from penstock.learn.detection.model import Model
from penstock.learn.detection.samples import Sample
from penstock.learn.detection.selection import Correlation, table
from penstock.learn.detection.training import KINDS, Folded, Kind, Trained

TIMED = 200
"""Observations that a prediction is timed with, one by one."""
REPETITIONS = 3
"""Of training; the thesis has the median of ten."""
FOLDS: Mapping[Size, int] = {"quick": 3, "fast": 5, "full": training.FOLDS}
TREES: Mapping[Size, int] = {"quick": 20, "fast": 100, "full": training.TREES}
"""Of cross-validation."""
JUDGED_TREES: Mapping[Size, int] = {
    "quick": 30,
    "fast": training.TREES,
    "full": training.TREES,
}
"""Of the forests that are compared with trees and networks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One model: what it reaches, and the seconds that it takes.

    Scores by the part of the observations; those with "all" in their name are of all runs, the
    others of runs with several clients an I/O node. `told` is what scikit-learn says, which always
    says something.
    """

    trained: Trained
    scores: Mapping[str, Scores]
    told: Mapping[str, Scores]
    train: float
    predict: float
    predict_sklearn: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All that the study says."""

    runs: int
    correlations: Sequence[Correlation]
    chosen: Sequence[str]
    thesis: Mapping[Kind, Judged]
    """Models that look at the thesis' five metrics."""
    ours: Mapping[Kind, Judged]
    """Models that look at the chosen ones."""
    layout: Sequence[Folded]
    """The thesis' forests by mtry: three classes (Table 3.3)."""
    spatiality: Sequence[Folded]
    """Two classes, and files not looked at (Table 3.4)."""
    shipped: Mapping[str, Scores]
    shipped_seconds: float
    beyond: Mapping[str, Mapping[str, Scores]]
    """Outside the grid, by features and kind; the shipped model was chosen by these."""
    held_out: Mapping[str, Mapping[str, Scores]]
    """Outside the grid too; nothing was chosen by these."""
    shipped_held_out: Scores
    folds: int
    trees: int

    @classmethod
    def of(cls, seen: Sequence[Sample], *, size: Size, seed: int) -> "Comparison":
        """Make all models of these observations, and judge them."""
        known = files.of_sizes(seen, files.TRAINED_ON)
        first, second = training.split(known, seed=seed)
        parts = {
            "training": first,
            "testing": second,
            "validation": files.of_sizes(seen, files.JUDGED_BY),
        }
        chosen = selection.chosen(known)
        folds, trees = FOLDS[size], TREES[size]
        several = evaluation.several_clients(known)
        by = {"seed": seed, "folds": folds, "trees": trees}
        no_files = [name for name in THESIS if name != "handles"]
        layout = training.cross_validated(several, THESIS, classes=training.labels(several), **by)
        spatiality = training.cross_validated(
            several, no_files, classes=training.spatiality(several), **by
        )
        mtry = max(layout, key=lambda one: one.kappa).mtry
        how = {"seed": seed, "mtry": mtry, "trees": JUDGED_TREES[size]}
        thesis = {kind: _judged(kind, THESIS, parts, **how) for kind in KINDS}
        ours = {kind: _judged(kind, chosen, parts, **how) for kind in KINDS}
        made = {"the thesis' five": thesis, "chosen": ours}
        return cls(
            runs=len({(s.pattern, s.operation, s.request, s.processes, s.io_nodes) for s in seen}),
            correlations=selection.correlations(known),
            chosen=chosen,
            thesis=thesis,
            ours=ours,
            layout=layout,
            spatiality=spatiality,
            shipped=_both(models.shipped(), {"validation": parts["validation"]}),
            shipped_seconds=_one_by_one(models.shipped(), parts["validation"]),
            beyond=_outside(made, files.beyond()),
            held_out=_outside(made, files.held_out()),
            shipped_held_out=evaluation.of_model(models.shipped(), files.held_out()),
            folds=folds,
            trees=trees,
        )


def _judged(
    kind: Kind,
    features: Sequence[str],
    parts: Mapping[str, Sequence[Sample]],
    *,
    seed: int,
    mtry: int,
    trees: int,
) -> Judged:
    made = [
        training.train(parts["training"], kind, features, seed=seed, mtry=mtry, trees=trees)
        for _ in range(REPETITIONS if kind == "tree" else 1)
    ]
    trained = made[0]
    told = {}
    for name, part in parts.items():
        some = evaluation.several_clients(part)
        said = dict(zip(map(id, (s.observation for s in some)), trained.tell(some), strict=True))
        told[name] = evaluation.scores(some, lambda seen, said=said: said[id(seen)])  # type: ignore[misc]
    return Judged(
        trained=trained,
        scores=_both(trained.model, parts),
        told=told,
        train=statistics.median(one.seconds for one in made),
        predict=_one_by_one(trained.model, parts["validation"]),
        predict_sklearn=_one_by_one_sklearn(trained, parts["validation"]),
    )


def _outside(
    made: Mapping[str, Mapping[Kind, Judged]], part: Sequence[Sample]
) -> dict[str, dict[str, Scores]]:
    return {
        name: {kind: evaluation.of_model(one.trained.model, part) for kind, one in kinds.items()}
        for name, kinds in made.items()
    }


def _both(model: Model, parts: Mapping[str, Sequence[Sample]]) -> dict[str, Scores]:
    found = {}
    for name, part in parts.items():
        found[name] = evaluation.of_model(model, evaluation.several_clients(part))
        found[f"{name}, all"] = evaluation.of_model(model, part)
    return found


def _one_by_one(model: Model, part: Sequence[Sample]) -> float:
    """Return the median seconds of a prediction."""
    taken = []
    for one in part[:TIMED]:
        began = time.perf_counter()
        model.detect(one.observation)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _one_by_one_sklearn(trained: Trained, part: Sequence[Sample]) -> float:
    values = table(part[: TIMED // 10], trained.model.features)
    taken = []
    for row in values:
        began = time.perf_counter()
        trained.estimator.predict(row.reshape(1, -1))
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)
