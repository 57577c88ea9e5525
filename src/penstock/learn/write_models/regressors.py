"""The regression techniques of paper write-models, III-C1, behind one small protocol.

All see standardised features and give seconds. What is fitted is in the units of the features, so
that it can be read and stored. SVR and Gaussian processes are the paper's negative result: they can
be fitted and asked, not stored.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from penstock.errors import unknown
from penstock.learn.trees import Tree, of_arrays
from penstock.learn.write_models.arrays import Floats
from penstock.learn.write_models.moments import Moments

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
"""What is tried of each technique. `penalty` is lambda of 1/2 mean((t - t')^2) + lambda |w| (lasso;
lambda w^2 / 2 for ridge) with w in seconds a standard deviation; for SVR it is C. `leaf`: samples
in a leaf at least."""
FIVE = ("linear", "ridge", "lasso", "tree", "forest")
FAILING = ("svr", "gaussian")
INDISTINCT = 1e-6
"""Of the largest: products of samples know their directions to the root of a number's precision."""
MTRY = 1 / 3
"""Of the features: what a split of a forest's tree chooses from."""


class Fitted(Protocol):
    """A model of seconds."""

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


@dataclass(frozen=True, slots=True)
class Grown:
    """A tree or a forest: as scikit-learn has it, and as arrays."""

    estimator: Any

    def predict(self, matrix: Floats) -> Floats:
        """Return the seconds for rows of features."""
        return np.asarray(self.estimator.predict(matrix), np.float64)

    @property
    def trees(self) -> list[Tree]:
        """Return the trees, whose mean is what the forest says."""
        return [
            of_arrays(one.tree_, one.tree_.value[:, 0, :].tolist())
            for one in getattr(self.estimator, "estimators_", [self.estimator])
        ]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A pipeline of scikit-learn."""

    estimator: Any

    def predict(self, matrix: Floats) -> Floats:
        """Return the seconds for rows of features."""
        return np.asarray(self.estimator.predict(matrix), np.float64)


def fit(
    technique: str, options: Options, matrix: Floats, seconds: Floats, *, seed: int = 0
) -> Fitted:
    """Return the model that a technique makes of samples."""
    if technique in ("linear", "ridge", "lasso"):
        return of_moments(technique, options, Moments.of(matrix, seconds))
    if technique in ("tree", "forest"):
        return Grown(_grower(technique, options, seed).fit(matrix, seconds))
    if technique in FAILING:
        return Kernel(_kernel(technique, options, seed).fit(matrix, seconds))
    raise unknown("technique", technique, GRIDS)


def of_moments(technique: str, options: Options, moments: Moments) -> Linear:
    """Return the linear model of samples of which only the moments are left: it needs no more."""
    rows, target = moments.rows()
    penalty = float(options.get("penalty", 0.0))
    if technique == "lasso":
        told = _lasso(rows, target, penalty)
    else:
        told = _least_squares(rows, target, penalty)
    coefficients = moments.raw(told)
    return Linear(moments.target - float(moments.mean @ coefficients), coefficients)


def _least_squares(rows: Floats, target: Floats, penalty: float) -> Floats:
    """Return the least squares with the smallest coefficients: features may say the same twice."""
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    count = len(rows)
    kept = sizes > INDISTINCT * sizes.max(initial=0.0)
    weights = np.where(kept, sizes / (sizes**2 + penalty * count + (sizes == 0)), 0.0)
    return np.asarray(right.T @ (weights * (left.T @ target)), np.float64)


def _lasso(rows: Floats, target: Floats, penalty: float) -> Floats:
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - slow to import
    from sklearn.linear_model import Lasso  # noqa: PLC0415

    if not rows.any():
        return np.zeros(rows.shape[1])
    with warnings.catch_warnings():
        # Features that nearly say the same share their weight slowly; the model is as good.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = Lasso(penalty, fit_intercept=False, max_iter=5000).fit(rows, target)
    return np.asarray(found.coef_, np.float64)


def _grower(technique: str, options: Options, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415

    leaf = int(options["leaf"])
    if technique == "tree":
        return DecisionTreeRegressor(min_samples_leaf=leaf, random_state=seed)
    return RandomForestRegressor(
        int(options["trees"]), min_samples_leaf=leaf, max_features=MTRY, random_state=seed
    )


def _kernel(technique: str, options: Options, seed: int) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415
    from sklearn.svm import SVR  # noqa: PLC0415

    name = str(options["kernel"])
    if technique == "svr":
        return make_pipeline(StandardScaler(), SVR(kernel=name, C=float(options["penalty"])))
    form = kernels.RBF(5.0) if name == "rbf" else kernels.DotProduct(1.0) ** 2
    process = GaussianProcessRegressor(
        kernels.ConstantKernel(1.0) * form, alpha=0.1, normalize_y=True, optimizer=None
    )
    process.set_params(random_state=seed)
    return make_pipeline(StandardScaler(), process)
