"""What the load of a file system says of a run's bandwidth, beside what it cannot say (TOKIO).

Identical runs differ. Whoever predicts a run by an identical one of the day before errs by their
difference: the floor of duplicates, that is reached without knowing anything of the load. A model
that sees the load while the run was made may do better. Models are made of the first four fifths of
the year and asked for the last.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.learn.write_models.sources.tokio import LoadedRun

Floats = NDArray[np.float64]
NEAR = 1.5 * 86400.0
"""Seconds: most runs were made once a day, not at the same time of it."""
MADE_OF = 0.8
TREES = 200


def judged(runs: Sequence[LoadedRun], *, seed: int) -> Mapping[str, float]:
    """Return median relative errors: of a model, of the usual bandwidth, and of duplicates."""
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415 - slow to import

    ordered = sorted(runs, key=lambda run: run.began)
    kinds = sorted({run.same for run in ordered})
    columns = sorted({name for run in ordered for name in run.load})
    matrix = np.array([_row(run, kinds, columns) for run in ordered])
    target = np.log([run.bandwidth for run in ordered])
    cut = int(MADE_OF * len(ordered))
    forest = RandomForestRegressor(
        TREES, min_samples_leaf=3, max_features=1 / 3, random_state=seed, n_jobs=1
    ).fit(matrix[:cut], target[:cut])
    usual = {
        kind: float(
            np.median(
                [t for run, t in zip(ordered[:cut], target, strict=False) if run.same == kind]
                or [float(np.median(target[:cut]))]
            )
        )
        for kind in kinds
    }
    later = ordered[cut:]
    by_usual = np.array([usual[run.same] for run in later])
    return {
        "runs": float(len(later)),
        "model": _error(forest.predict(matrix[cut:]), target[cut:]),
        "usual": _error(by_usual, target[cut:]),
        "floor": duplicates(later),
    }


def duplicates(runs: Sequence[LoadedRun]) -> float:
    """Return the median error of predicting a run by the identical one shortly before."""
    last: dict[object, LoadedRun] = {}
    errors = []
    for run in sorted(runs, key=lambda run: run.began):
        before = last.get(run.same)
        if before is not None and run.began - before.began <= NEAR:
            errors.append(abs(before.bandwidth / run.bandwidth - 1))
        last[run.same] = run
    return float(np.median(errors)) if errors else float("nan")


def _row(run: LoadedRun, kinds: Sequence[object], columns: Sequence[str]) -> list[float]:
    known = [run.load.get(name, np.nan) for name in columns]
    return [float(run.same == kind) for kind in kinds] + [-1.0 if np.isnan(x) else x for x in known]


def _error(told: Floats, target: Floats) -> float:
    return float(np.median(np.abs(np.exp(told - target) - 1)))
