"""The average of many runs and the next run are two things, and have two intervals."""

import math

import numpy as np
import pytest
from learn.write_models import synthetic

from penstock.learn.write_models import intervals, training
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.intervals import Interval
from penstock.learn.write_models.samples import Sample

SCATTER = 0.3


def table(count: int, runs: int, *, seed: int) -> Dataset:
    """Runs that scatter about a law: their means know it well, one of them does not."""
    chance = np.random.default_rng(seed)
    samples = [
        Sample(
            machine="titan",
            source="made up",
            write=write,
            times=tuple(
                synthetic.seconds(write) * float(chance.lognormal(0, SCATTER)) for _ in range(runs)
            ),
        )
        for write in synthetic.writes(count, seed=seed)
    ]
    return Dataset.from_samples(synthetic.TITAN, samples)


def test_each_interval_holds_for_what_it_is_of() -> None:
    """One calibrated by means alone held for 36% of what runs of a busy machine took."""
    learned = training.train(table(300, 12, seed=1), seed=1)
    tested = table(400, 12, seed=2)
    kept = [k for k, t in enumerate(tested.seconds) if t >= 5]
    predictions = [learned.predict(tested.writes[k]) for k in kept]
    means = [
        one.low <= tested.seconds[k] <= one.high for k, one in zip(kept, predictions, strict=True)
    ]
    first = [tested.times[k][0] for k in kept]
    runs, by_means = [], []
    for one, t in zip(predictions, first, strict=True):
        assert one.run is not None
        runs.append(one.run[0] <= t <= one.run[1])
        by_means.append(one.low <= t <= one.high)
    assert 0.85 <= np.mean(means) <= 0.97
    assert 0.85 <= np.mean(runs) <= 0.95
    assert np.mean(by_means) < 0.7


def test_samples_of_many_runs_count_as_those_of_few() -> None:
    """Nine samples of one run that err by 0.1, and one of 1,000 that err by 1: one in ten."""
    times = [(math.exp(0.1),)] * 9 + [(math.exp(1.0),) * 1000]
    samples = [
        Sample(machine="titan", source="made up", write=write, times=some)
        for write, some in zip(synthetic.writes(10), times, strict=True)
    ]
    errors = np.array([-0.1] * 9 + [-1.0])
    whole = Dataset.from_samples(synthetic.TITAN, samples)
    assert intervals.run_quantile(errors, whole, 0.8) == pytest.approx(0.1)
    assert intervals.run_quantile(errors, whole, 0.9) == pytest.approx(1.0)


def test_one_run_is_never_surer_than_a_mean() -> None:
    one = Interval(coverage=0.9, half=0.1, beyond=0.1, growth=0.5, run=0.2)
    assert one.around(10.0, 0.0, one_run=True)[1] == pytest.approx(10 * math.exp(0.3))
    assert one.around(10.0, 2.0, one_run=True)[1] == pytest.approx(10 * math.exp(0.4))
    assert training.train(synthetic.table(100), seed=1).model.interval.run == 0.0
