"""How much of a run's bandwidth can be predicted from the state of the file system.

Runs of one configuration differ because of what other jobs do at the time. No model can be better
than identical runs agree with each other: that floor is reported beside every error.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.errors import InputError
from penstock.learn.write_models.parameters import Floats
from penstock.learn.write_models.sources.tokio import LoadedRun

NEAR = 86400.0
"""Seconds within which two runs count as identical in time."""
TRAINED = 0.7
"""Fraction of the runs, the earliest, that the model is trained with."""
FEWEST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: its configuration, start, bandwidth, and the state of the file system."""

    configuration: tuple[str, ...]
    began: float
    bandwidth: float
    load: Mapping[str, float]
    """What was measured; NaN where it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Median relative errors on the latest runs."""

    floor: float
    """The error of a model that knew everything but the noise of a run: identical runs within a day
    of each other differ by the noise of two."""
    usual: float
    """Of the configuration's earlier median as a prediction."""
    model: float
    tested: int
    pairs: int


def write_runs(runs: Iterable[LoadedRun]) -> list[Run]:
    """Return the runs that mostly wrote."""
    return [
        Run(
            configuration=tuple(map(str, run.configuration)),
            began=run.began,
            bandwidth=run.bandwidth,
            load={name: value for name, value in run.load.items() if not math.isnan(value)},
        )
        for run in runs
        if run.operation == "write"
    ]


def errors(runs: Sequence[Run], columns: Sequence[str], *, seed: int) -> Errors:
    """Return the errors of a model that gets these columns of the load, and the floor."""
    ordered = sorted(runs, key=lambda run: run.began)
    if len(ordered) < FEWEST:
        raise InputError(f"{len(ordered)} runs are too few to learn from; give {FEWEST} or more")
    cut = int(TRAINED * len(ordered))
    usual = _medians(ordered[:cut])
    first = [run for run in ordered[:cut] if run.configuration in usual]
    last = [run for run in ordered[cut:] if run.configuration in usual]
    if not last:
        raise InputError("no configuration was run both before and after; nothing can be tested")
    # A column that was never measured in the earlier runs is useless.
    columns = [name for name in columns if any(name in run.load for run in first)]
    expected = np.array([usual[run.configuration] for run in last])
    truth = _bandwidths(last)
    predicted = expected * np.exp(
        _model(first, usual, columns, seed).predict(_columns(last, columns))
    )
    near = _pairs(ordered[cut:])
    return Errors(
        floor=float(np.median(np.abs(near)) / np.sqrt(2)) if len(near) else float("nan"),
        usual=_median_error(expected, truth),
        model=_median_error(predicted, truth),
        tested=len(last),
        pairs=len(near),
    )


def _model(
    first: Sequence[Run], usual: Mapping[tuple[str, ...], float], columns: Sequence[str], seed: int
) -> Any:
    """Return a model of the logarithm of bandwidth over the usual one."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415 - slow to import

    target = np.log(_bandwidths(first) / [usual[run.configuration] for run in first])
    boosted = HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=60, learning_rate=0.1, random_state=seed
    )
    return boosted.fit(_columns(first, columns), target)


def _medians(runs: Sequence[Run]) -> dict[tuple[str, ...], float]:
    by: dict[tuple[str, ...], list[float]] = {}
    for run in runs:
        by.setdefault(run.configuration, []).append(run.bandwidth)
    return {key: float(np.median(rates)) for key, rates in by.items() if len(rates) >= 10}


def _bandwidths(runs: Sequence[Run]) -> Floats:
    return np.array([run.bandwidth for run in runs], np.float64)


def _columns(runs: Sequence[Run], columns: Sequence[str]) -> Floats:
    rows = [[run.load.get(name, np.nan) for name in columns] for run in runs]
    return np.array(rows, np.float64).reshape(len(runs), len(columns))


def _pairs(ordered: Sequence[Run]) -> Floats:
    """Return the log ratio of each run to the identical one before it, if that is recent."""
    before: dict[tuple[str, ...], Run] = {}
    ratios: list[float] = []
    for run in ordered:
        last = before.get(run.configuration)
        if last is not None and run.began - last.began <= NEAR:
            ratios.append(float(np.log(run.bandwidth / last.bandwidth)))
        before[run.configuration] = run
    return np.array(ratios, np.float64)


def _median_error(predicted: Floats, truth: Floats) -> float:
    return float(np.median(np.abs(predicted / truth - 1)))
