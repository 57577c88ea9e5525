"""Makes models of samples with scikit-learn, and exports them as arrays.

CART stands in for the thesis' C5.0, and a multilayer perceptron of scikit-learn (Adam) for its
Keras network (RMSProp); the random forest is one.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.learn.detection.features import table
from penstock.learn.detection.model import FORMAT, VERSION, Layer, Model, Network
from penstock.learn.detection.samples import Sample
from penstock.learn.trees import Tree, tree_from_sklearn
from penstock.model.observation import PATTERNS

Kind = Literal["tree", "forest", "network"]
KINDS: tuple[Kind, ...] = ("tree", "forest", "network")
TREES = 500
FEWEST_IN_LEAF = 5
TESTED = 0.3
MTRY = (2, 3, 5)
FOLDS = 25
EPOCHS = 400
HIDDEN = 16
"""Units between features and classes. The thesis has five; with so few, what is learnt of the
borders between classes depends on the seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A model, what scikit-learn has of it, and the seconds that took."""

    model: Model
    estimator: Any
    seconds: float

    def tell(self, samples: Sequence[Sample]) -> list[str]:
        """Return what scikit-learn itself says of samples, in one call."""
        classes = self.estimator.predict(table(samples, self.model.features))
        return [PATTERNS[k] for k in classes]


def train(
    samples: Sequence[Sample],
    kind: Kind,
    features: Sequence[str],
    *,
    seed: int,
    trees: int = TREES,
    mtry: int = 3,
) -> Trained:
    """Return a model of a kind that looks at these features."""
    check(samples)
    estimator = _estimator(kind, seed=seed, trees=trees, mtry=mtry, width=len(features))
    values, classes = table(samples, features), labels(samples)
    began = time.perf_counter()
    fitted = estimator.fit(values, classes)
    seconds = time.perf_counter() - began
    parts: dict[str, Any]
    if kind == "tree":
        parts = {"trees": [_tree(fitted.tree_, smoothed=True)]}
    elif kind == "forest":
        parts = {"trees": [_tree(one.tree_, smoothed=False) for one in fitted.estimators_]}
    else:
        parts = {"network": _network(fitted)}
    model = Model(
        format=FORMAT,
        version=VERSION,
        kind=kind,
        features=list(features),
        classes=list(PATTERNS),
        **parts,
    )
    model.check()
    return Trained(model=model, estimator=fitted, seconds=seconds)


def check(samples: Sequence[Sample]) -> None:
    """Raise InputError unless there is something of every class to learn."""
    for pattern in PATTERNS:
        if sum(one.pattern == pattern for one in samples) < 2 * FEWEST_IN_LEAF:
            raise InputError(
                f"too few observations of {pattern} to learn from; "
                "'penstock patterns measure' takes some of every pattern"
            )


def labels(samples: Sequence[Sample]) -> NDArray[np.int64]:
    """Return the classes of samples as numbers."""
    return np.array([PATTERNS.index(one.pattern) for one in samples], dtype=np.int64)


def split(samples: Sequence[Sample], *, seed: int) -> tuple[list[Sample], list[Sample]]:
    """Return 70% to train with and 30% to test with, every class in both."""
    from sklearn.model_selection import train_test_split  # noqa: PLC0415

    check(samples)
    first, second = train_test_split(
        list(samples), test_size=TESTED, random_state=seed, stratify=labels(samples)
    )
    return first, second


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldScores:
    """Mean scores over folds of a forest with `mtry` features at a split."""

    mtry: int
    accuracy: float
    kappa: float


def spatiality(samples: Sequence[Sample]) -> NDArray[np.int64]:
    """Return the classes that remain if files are ignored: strided, or not."""
    return np.array([one.pattern == "shared-strided" for one in samples], dtype=np.int64)


def spatiality_tree(
    features: Sequence[str], parts: Mapping[str, Sequence[Sample]], *, seed: int
) -> dict[str, float]:
    """Return how accurately a tree separates strided from contiguous, by part.

    It is made of the part "training".
    """
    tree = _estimator("tree", seed=seed, trees=1, mtry=1, width=len(features))
    tree.fit(table(parts["training"], features), spatiality(parts["training"]))
    return {
        name: float(tree.score(table(part, features), spatiality(part)))
        for name, part in parts.items()
    }


def cross_validated(
    samples: Sequence[Sample],
    features: Sequence[str],
    *,
    classes: NDArray[np.int64],
    seed: int,
    folds: int = FOLDS,
    trees: int = TREES,
) -> list[FoldScores]:
    """Return the forest's scores by the number of features at a split."""
    from sklearn.metrics import cohen_kappa_score, make_scorer  # noqa: PLC0415
    from sklearn.model_selection import StratifiedKFold, cross_validate  # noqa: PLC0415

    values = table(samples, features)
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
    scoring = {"accuracy": "accuracy", "kappa": make_scorer(cohen_kappa_score)}
    result = []
    for mtry in dict.fromkeys(min(m, len(features)) for m in MTRY):
        forest = _estimator("forest", seed=seed, trees=trees, mtry=mtry, width=len(features))
        scores = cross_validate(forest, values, classes, cv=parts, scoring=scoring)
        result.append(
            FoldScores(
                mtry=mtry,
                accuracy=float(scores["test_accuracy"].mean()),
                kappa=float(scores["test_kappa"].mean()),
            )
        )
    return result


def _estimator(kind: Kind, *, seed: int, trees: int, mtry: int, width: int) -> Any:
    # Imported only to train: evaluation does not need it.
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import PowerTransformer  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    if kind == "tree":
        return DecisionTreeClassifier(min_samples_leaf=FEWEST_IN_LEAF, random_state=seed)
    if kind == "forest":
        return RandomForestClassifier(trees, max_features=min(mtry, width), random_state=seed)
    network = MLPClassifier(
        (HIDDEN,), batch_size=32, max_iter=EPOCHS, learning_rate_init=0.005, random_state=seed
    )
    return make_pipeline(PowerTransformer(method="yeo-johnson"), network)


def _tree(tree: Any, *, smoothed: bool) -> Tree:
    shares = tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True)
    if smoothed:
        # Laplace: a pure leaf of few samples is still uncertain.
        count = tree.weighted_n_node_samples[:, None]
        shares = (shares * count + 1) / (count + shares.shape[1])
    return tree_from_sklearn(tree, [[round(x, 6) for x in row] for row in shares.tolist()])


def _network(pipeline: Any) -> Network:
    transform, network = (step for _, step in pipeline.steps)
    scaler = transform._scaler
    return Network(
        power=transform.lambdas_.tolist(),
        mean=scaler.mean_.tolist(),
        scale=scaler.scale_.tolist(),
        layers=[
            Layer(weights=weights.T.tolist(), bias=bias.tolist())
            for weights, bias in zip(network.coefs_, network.intercepts_, strict=True)
        ],
    )


def version() -> str:
    """Return the version of scikit-learn."""
    import sklearn  # noqa: PLC0415

    return str(sklearn.__version__)
