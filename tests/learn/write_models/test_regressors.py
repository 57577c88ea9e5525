"""Regressors: laws that are found, and moments that are as good as the samples."""

import warnings

import numpy as np
import pytest
from learn.write_models import synthetic
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from penstock.errors import InputError
from penstock.learn.write_models import features, regressors
from penstock.learn.write_models.regressors import Moments, add_moments

RNG = np.random.default_rng(3)
MATRIX = RNG.lognormal(0, 1, (60, 5)) * np.array([1.0, 1e3, 1e9, 1e-6, 10.0])
TRUE = np.array([2.0, -3e-3, 4e-9, 5e6, 0.0])
SECONDS = 7.0 + MATRIX @ TRUE
NOISY = SECONDS + RNG.normal(0, 1.0, 60)


@pytest.mark.parametrize("technique", ["linear", "ridge", "lasso"])
def test_a_linear_law_is_found_in_its_own_units(technique: str) -> None:
    fitted = regressors.fit(technique, {"penalty": 1e-9}, MATRIX, SECONDS)
    assert isinstance(fitted, regressors.Linear)
    assert fitted.intercept == pytest.approx(7.0, rel=1e-3)
    scale = MATRIX.std(axis=0)
    assert fitted.coefficients * scale == pytest.approx(TRUE * scale, abs=1e-3)


@pytest.mark.parametrize(
    ("technique", "options", "reference"),
    [
        ("linear", {}, LinearRegression()),
        ("ridge", {"penalty": 0.1}, Ridge(0.1 * 60)),
        ("lasso", {"penalty": 0.1}, Lasso(0.1, max_iter=100_000, tol=1e-10)),
    ],
)
def test_moments_added_up_give_the_fit_to_all_samples(
    technique: str, options: dict[str, float], reference: object
) -> None:
    """Parts of 10, 20 and 30 samples; scikit-learn sees all 60, standardised."""
    parts = [slice(0, 10), slice(10, 30), slice(30, 60)]
    moments = add_moments(Moments.from_samples(MATRIX[part], NOISY[part]) for part in parts)
    ours = regressors.fit_moments(technique, options, moments)
    direct = make_pipeline(StandardScaler(), reference).fit(MATRIX, NOISY)
    assert ours.predict(MATRIX) == pytest.approx(direct.predict(MATRIX), rel=1e-3, abs=1e-3)


def test_a_feature_that_never_changes_has_no_weight() -> None:
    """At one scale m is a constant: its spread is rounding, and nothing may be divided by it."""
    matrix = np.column_stack([MATRIX, np.full(60, 0.1 + 0.2)])
    for technique in ("linear", "ridge", "lasso"):
        fitted = regressors.fit(technique, {"penalty": 0.01}, matrix, NOISY)
        assert isinstance(fitted, regressors.Linear)
        assert fitted.coefficients[-1] == 0


def test_features_that_say_the_same_share_their_weight() -> None:
    twice = np.column_stack([MATRIX, MATRIX[:, 2]])
    fitted = regressors.fit("linear", {}, twice, SECONDS)
    assert isinstance(fitted, regressors.Linear)
    assert fitted.coefficients[[2, 5]] == pytest.approx([2e-9, 2e-9], rel=1e-6)


@pytest.mark.parametrize("technique", [*regressors.PAPER_TECHNIQUES, *regressors.KERNEL_TECHNIQUES])
def test_every_option_of_the_grid_is_better_than_the_mean(technique: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in regressors.GRIDS[technique]:
            fitted = regressors.fit(technique, options, MATRIX, SECONDS)
            left = fitted.predict(MATRIX) - SECONDS
            assert np.mean(left**2) < np.var(SECONDS), options


def test_trees_as_arrays_say_what_scikit_learn_says() -> None:
    fitted = regressors.fit("forest", {"leaf": 1, "trees": 7}, MATRIX, NOISY)
    trees = regressors.stored_trees(fitted)
    means = [np.mean([t.evaluate(row)[0] for t in trees]) for row in MATRIX.tolist()]
    assert means == pytest.approx(fitted.predict(MATRIX).tolist())


def test_an_unknown_technique_is_named() -> None:
    with pytest.raises(InputError, match="did you mean 'lasso'"):
        regressors.fit("laso", {}, MATRIX, SECONDS)


def test_titans_columns_are_its_features_and_its_tags() -> None:
    some = synthetic.table(8)
    width = len(features.features(synthetic.TITAN))
    assert some.matrix().shape == (8, width)
    matrix = some.matrix(["a", "", "b"])
    assert matrix[:, width:].tolist() == [[1.0, 0.0]] * 8
