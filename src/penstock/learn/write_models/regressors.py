"""The regression techniques of paper write-models, III-C1, behind one small protocol.

All get standardised features and predict seconds. The fitted coefficients are in the units of the
features, so that they can be read and stored. SVR and Gaussian processes are the paper's negative
result: they can be fitted and evaluated, not stored.

Linear models need only the first and second moments of samples, and moments add up: the moments of
a union of sets come from those of the sets, so that a model search fits the 255 unions of eight
scales without going through the samples again. From moments a few rows are made that have the same
moments: a model that fits those rows fits the samples, exactly.
"""

import functools
import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from penstock.errors import unknown
from penstock.learn.trees import Tree, tree_from_sklearn
from penstock.learn.write_models.parameters import Floats

Options = Mapping[str, float | str]

GRIDS: Mapping[str, Sequence[Options]] = {
    "linear": [{}],
    "ridge": [{"penalty": x} for x in (0.001, 0.01, 0.1, 1.0)],
    "lasso": [{"penalty": x} for x in (0.001, 0.01, 0.1, 1.0)],
    "tree": [{"leaf": x} for x in (1, 4, 16)],
    "forest": [{"leaf": x, "trees": 60} for x in (1, 4)],
    "svr": [{"kernel": k, "penalty": x} for k in ("rbf", "poly") for x in (1.0, 100.0)],
    "gaussian": [{"kernel": k} for k in ("rbf", "poly")],
}
"""The options tried for each technique. `penalty` is lambda of 1/2 mean((t - t')^2) + lambda |w|
(lasso; lambda w^2 / 2 for ridge) with w in seconds per standard deviation; for SVR it is C. `leaf`
is the minimum number of samples in a leaf."""
LINEAR = ("linear", "ridge", "lasso")
PAPER_TECHNIQUES = (*LINEAR, "tree", "forest")
"""The five that the paper compares."""
KERNEL_TECHNIQUES = ("svr", "gaussian")
"""The two that the paper found to fail."""
INDISTINCT = 1e-6
"""Relative to the largest singular value: products of samples know their directions only to the
square root of the floating-point precision."""
MTRY = 1 / 3
"""The fraction of features that a split of a forest's tree chooses from."""


class Regressor(Protocol):
    """A fitted model of seconds."""

    def predict(self, matrix: Floats) -> Floats:
        """Return the seconds for rows of features."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """Intercept and coefficients in the features' own units."""

    intercept: float
    coefficients: Floats

    def predict(self, matrix: Floats) -> Floats:
        """Return the seconds for rows of features."""
        return np.asarray(self.intercept + matrix @ self.coefficients, np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Moments:
    """Moments of features and target: count, means, and centred products.

    It has no slots: what costs most, `rows`, is kept for the next penalty.
    """

    count: int
    mean: Floats
    target: float
    products: Floats
    """Products of the features with each other; with the target in the last row and column."""

    @classmethod
    def from_samples(cls, matrix: Floats, target: Floats) -> "Moments":
        """Return the moments of samples."""
        mean, middle = matrix.mean(axis=0), float(target.mean())
        centred = np.column_stack([matrix - mean, target - middle])
        return cls(
            count=len(matrix), mean=mean, target=middle, products=np.asarray(centred.T @ centred)
        )

    def __add__(self, other: "Moments") -> "Moments":
        count = self.count + other.count
        apart = np.append(other.mean - self.mean, other.target - self.target)
        part = other.count / count
        return Moments(
            count=count,
            mean=self.mean + part * apart[:-1],
            target=self.target + part * float(apart[-1]),
            products=self.products + other.products + (self.count * part) * np.outer(apart, apart),
        )

    @property
    def scale(self) -> Floats:
        """Return the standard deviation of each feature; 0 for a constant one."""
        spread = np.sqrt(np.diag(self.products)[:-1] / self.count)
        return np.where(spread > 1e-9 * np.abs(self.mean), spread, 0.0)

    @functools.cached_property
    def rows(self) -> tuple[Floats, Floats]:
        """Return rows of standardised features, and their target, that have these moments."""
        scale = np.append(self.scale, 1.0)
        by = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        covariance = self.products * np.outer(by, by) / self.count
        sizes, axes = np.linalg.eigh(covariance)
        root = axes * np.sqrt(np.clip(sizes, 0.0, None) * len(sizes))
        return np.ascontiguousarray(root.T[:, :-1]), np.ascontiguousarray(root.T[:, -1])

    def raw(self, coefficients: Floats) -> Floats:
        """Convert coefficients of standardised features to the features' own units."""
        scale = self.scale
        return np.divide(coefficients, scale, out=np.zeros_like(scale), where=scale > 0)


def add_moments(parts: Iterable[Moments]) -> Moments:
    """Return the moments of the union of all parts."""
    return functools.reduce(operator.add, parts)


def fit(
    technique: str, options: Options, matrix: Floats, seconds: Floats, *, seed: int = 0
) -> Regressor:
    """Fit a technique to samples."""
    if technique in LINEAR:
        return fit_moments(technique, options, Moments.from_samples(matrix, seconds))
    if technique not in GRIDS:
        raise unknown("technique", technique, GRIDS)
    fitted: Regressor = _estimator(technique, options, seed).fit(matrix, seconds)
    return fitted


def stored_trees(model: Any) -> list[Tree]:
    """Return the trees of a fitted tree or forest; their mean is the prediction."""
    return [
        tree_from_sklearn(one.tree_, one.tree_.value[:, 0, :].tolist())
        for one in getattr(model, "estimators_", [model])
    ]


def fit_moments(technique: str, options: Options, moments: Moments) -> Linear:
    """Fit a linear technique to the moments of samples."""
    rows, target = moments.rows
    penalty = float(options.get("penalty", 0.0))
    if technique == "lasso":
        standardised = _lasso(rows, target, penalty)
    else:
        standardised = _least_squares(rows, target, penalty)
    coefficients = moments.raw(standardised)
    return Linear(moments.target - float(moments.mean @ coefficients), coefficients)


def _least_squares(rows: Floats, target: Floats, penalty: float) -> Floats:
    """Return the least-squares solution of least norm: features may be redundant."""
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    count = len(rows)
    distinct = sizes > INDISTINCT * sizes.max(initial=0.0)
    weights = np.where(distinct, sizes / (sizes**2 + penalty * count + (sizes == 0)), 0.0)
    return np.asarray(right.T @ (weights * (left.T @ target)), np.float64)


def _lasso(rows: Floats, target: Floats, penalty: float) -> Floats:
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - slow to import
    from sklearn.linear_model import Lasso  # noqa: PLC0415

    if not rows.any():
        return np.zeros(rows.shape[1])
    with warnings.catch_warnings():
        # Nearly redundant features share their weight slowly; the model is as good.
        warnings.simplefilter("ignore", ConvergenceWarning)
        lasso = Lasso(penalty, fit_intercept=False, max_iter=5000).fit(rows, target)
    return np.asarray(lasso.coef_, np.float64)


def _estimator(technique: str, options: Options, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415
    from sklearn.svm import SVR  # noqa: PLC0415
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415

    leaf, kernel = int(options.get("leaf", 1)), str(options.get("kernel", ""))
    match technique:
        case "tree":
            return DecisionTreeRegressor(min_samples_leaf=leaf, random_state=seed)
        case "forest":
            return RandomForestRegressor(
                int(options["trees"]), min_samples_leaf=leaf, max_features=MTRY, random_state=seed
            )
        case "svr":
            kernelled = SVR(kernel=kernel, C=float(options["penalty"]))
        case _:
            form = kernels.RBF(5.0) if kernel == "rbf" else kernels.DotProduct(1.0) ** 2
            kernelled = GaussianProcessRegressor(
                kernels.ConstantKernel(1.0) * form,
                alpha=0.1,
                normalize_y=True,
                optimizer=None,
                random_state=seed,
            )
    return make_pipeline(StandardScaler(), kernelled)
