"""Models of all kinds, trained on the same observations and tested on new ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.campaign.sizes import Size
from penstock.learn.detection import evaluation, training
from penstock.learn.detection import model as models
from penstock.learn.detection import samples as files
from penstock.learn.detection.evaluation import Scores
from penstock.learn.detection.features import THESIS, Correlation, correlations, select, table
from penstock.learn.detection.model import Model
from penstock.learn.detection.samples import Sample
from penstock.learn.detection.training import KINDS, FoldScores, Kind, Trained
from penstock.model import Observation
from penstock.model.observation import PATTERNS
from penstock.studies.detection.sizes import EXCLUDED, REMAINS, coefficients

FOLDS: Mapping[Size, int] = {"quick": 3, "fast": 5, "full": training.FOLDS}
TREES: Mapping[Size, int] = {"quick": 20, "fast": 100, "full": training.TREES}
"""Trees per forest in cross-validation."""
JUDGED_TREES: Mapping[Size, int] = {"quick": 30, "fast": training.TREES, "full": training.TREES}
"""Trees per forest in the comparison with trees and networks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScores:
    """One model and its scores.

    Scores by the part of the observations; those with "all" in their name are of all runs, the
    others of runs with several clients per I/O node. `sklearn` are the scores of scikit-learn's
    model, which always gives an answer.
    """

    trained: Trained
    scores: Mapping[str, Scores]
    sklearn: Mapping[str, Scores]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The results of the study."""

    runs: int
    correlations: Sequence[Correlation]
    reordered: Sequence[Correlation]
    """With classes numbered in the order of Table 3.2 instead of the thesis' list."""
    sizes: Mapping[str, tuple[float, float]]
    """Mean of the smallest and of the mean request of an observation, in bytes, by class."""
    changed_sizes: Mapping[str, Sequence[float]]
    """How sizes go with the class, by each order, if one thing were changed that does not do it."""
    larger_if_shared: Sequence[float]
    """The same if requests to shared files were larger than those to files per process."""
    features: Sequence[str]
    thesis: Mapping[Kind, ModelScores]
    """Models of the thesis' five metrics."""
    ours: Mapping[Kind, ModelScores]
    """Models of the selected features."""
    layout: Sequence[FoldScores]
    """The thesis' forests by mtry: three classes (Table 3.3)."""
    spatiality: Sequence[FoldScores]
    """Two classes, and files not looked at (Table 3.4)."""
    spatiality_tree: Mapping[str, float]
    """Accuracy of a tree of these by the part of the observations (Fig. 3.5)."""
    shipped: Mapping[str, Scores]
    beyond: Mapping[str, Mapping[str, Scores]]
    """Outside the grid, by features and kind; these selected the shipped model."""
    held_out: Mapping[str, Mapping[str, Scores]]
    """Outside the grid too; these selected nothing."""
    held_out_sklearn: Mapping[str, Mapping[str, Scores]]
    """The same if no model ever withheld an answer."""
    shipped_held_out: Scores
    folds: int
    trees: int

    @classmethod
    def from_samples(cls, samples: Sequence[Sample], *, size: Size, seed: int) -> "Comparison":
        """Train all models on these observations, and evaluate them."""
        training_samples = files.of_sizes(samples, files.TRAINED_ON)
        first, second = training.split(training_samples, seed=seed)
        parts = {
            "training": first,
            "testing": second,
            "validation": files.of_sizes(samples, files.JUDGED_BY),
        }
        features = select(training_samples)
        folds, trees = FOLDS[size], TREES[size]
        several = evaluation.several_clients(training_samples)
        by = {"seed": seed, "folds": folds, "trees": trees}
        no_files = [name for name in THESIS if name != "handles"]
        layout = training.cross_validated(several, THESIS, classes=training.labels(several), **by)
        spatiality = training.cross_validated(
            several, no_files, classes=training.spatiality(several), **by
        )
        mtry = max(layout, key=lambda one: one.kappa).mtry
        how = {"seed": seed, "mtry": mtry, "trees": JUDGED_TREES[size]}
        thesis = {kind: _evaluate(kind, THESIS, parts, **how) for kind in KINDS}
        ours = {kind: _evaluate(kind, features, parts, **how) for kind in KINDS}
        by_features = {"the thesis' five": thesis, "chosen": ours}
        return cls(
            runs=len(
                {(s.pattern, s.operation, s.request, s.processes, s.io_nodes) for s in samples}
            ),
            correlations=correlations(training_samples),
            reordered=correlations(training_samples, PATTERNS),
            sizes={pattern: _sizes(training_samples, pattern) for pattern in PATTERNS},
            changed_sizes={
                words: coefficients(change(training_samples)) for words, change in EXCLUDED.items()
            },
            larger_if_shared=coefficients(REMAINS(training_samples)),
            features=features,
            thesis=thesis,
            ours=ours,
            layout=layout,
            spatiality=spatiality,
            spatiality_tree=training.spatiality_tree(
                no_files,
                {name: evaluation.several_clients(part) for name, part in parts.items()},
                seed=seed,
            ),
            shipped=_both(models.shipped(), {"validation": parts["validation"]}),
            beyond=_outside(by_features, files.beyond()),
            held_out=_outside(by_features, files.held_out()),
            held_out_sklearn={
                name: {kind: _sklearn(one.trained, files.held_out()) for kind, one in kinds.items()}
                for name, kinds in by_features.items()
            },
            shipped_held_out=evaluation.model_scores(models.shipped(), files.held_out()),
            folds=folds,
            trees=trees,
        )


def _sizes(samples: Sequence[Sample], pattern: str) -> tuple[float, float]:
    own = [one for one in samples if one.pattern == pattern]
    smallest, mean = table(own, ("smallest", "size")).mean(axis=0).tolist()
    return smallest, mean


def _evaluate(
    kind: Kind,
    features: Sequence[str],
    parts: Mapping[str, Sequence[Sample]],
    *,
    seed: int,
    mtry: int,
    trees: int,
) -> ModelScores:
    trained = training.train(parts["training"], kind, features, seed=seed, mtry=mtry, trees=trees)
    return ModelScores(
        trained=trained,
        scores=_both(trained.model, parts),
        sklearn={
            name: _sklearn(trained, evaluation.several_clients(part))
            for name, part in parts.items()
        },
    )


def _sklearn(trained: Trained, part: Sequence[Sample]) -> Scores:
    """Return the scores of scikit-learn's model, which always gives an answer."""
    answers = dict(zip(map(id, (s.observation for s in part)), trained.tell(part), strict=True))

    def answer(observation: Observation) -> str:
        return answers[id(observation)]

    return evaluation.scores(part, answer)


def _outside(
    by_features: Mapping[str, Mapping[Kind, ModelScores]], part: Sequence[Sample]
) -> dict[str, dict[str, Scores]]:
    return {
        name: {
            kind: evaluation.model_scores(one.trained.model, part) for kind, one in kinds.items()
        }
        for name, kinds in by_features.items()
    }


def _both(model: Model, parts: Mapping[str, Sequence[Sample]]) -> dict[str, Scores]:
    scores = {}
    for name, part in parts.items():
        scores[name] = evaluation.model_scores(model, evaluation.several_clients(part))
        scores[f"{name}, all"] = evaluation.model_scores(model, part)
    return scores
