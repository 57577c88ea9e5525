"""Our model: laws that go on, rising with every load; intervals that hold as often as they say."""

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learn.write_models import synthetic

from penstock.learn.write_models import extrapolation, intervals, parameters, training
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.extrapolation import Options
from penstock.learn.write_models.intervals import Interval
from penstock.learn.write_models.samples import Sample

ROUGH = synthetic.table(300, noise=0.5)
BOOSTED = extrapolation.fit(ROUGH, Options(power=2.0, rounds=30))
WIDTH = len(parameters.stage_names(synthetic.TITAN))


def test_a_physical_law_is_found_and_goes_on_at_sixteen_times_the_scale() -> None:
    model = extrapolation.fit(synthetic.table(200), Options(power=1.0, damping=0.0))
    far = synthetic.table(60, (256, 512, 1024, 2000), seed=9)
    predicted = np.exp(extrapolation.predict(model, far))
    assert np.median(np.abs(predicted / far.seconds - 1)) < 0.02


def test_a_soft_maximum_is_the_sum_at_one_and_the_largest_far_above() -> None:
    logs = np.log(np.array([[1.0, 2.0, 4.0]]))
    assert math.exp(extrapolation.soft_maximum(logs, 1.0)[0][0]) == pytest.approx(7.0)
    assert math.exp(extrapolation.soft_maximum(logs, 60.0)[0][0]) == pytest.approx(4.0, rel=1e-6)
    assert extrapolation.soft_maximum(logs, 1.0)[1][0] == pytest.approx([1 / 7, 2 / 7, 4 / 7])


@settings(max_examples=200)
@given(
    st.lists(st.floats(-5, 40), min_size=WIDTH, max_size=WIDTH),
    st.integers(0, WIDTH - 1),
    st.floats(0, 20),
)
def test_time_never_falls_when_a_load_grows(row: list[float], which: int, more: float) -> None:
    """Within the range and outside it, trees and all."""
    larger = list(row)
    larger[which] += more
    logs, _ = BOOSTED.evaluate(np.array([row, larger]), ["", ""], np.zeros((2, WIDTH)))
    assert logs[1] >= logs[0] - 1e-9


@pytest.mark.parametrize("damping", [0.0, 0.5, 1.0])
def test_beyond_the_largest_scale_time_grows_between_the_terms_way_and_the_datas(
    damping: float,
) -> None:
    """From 128 nodes to 1,024: eight times the data; the term says less, for its latency."""
    model = extrapolation.fit(synthetic.table(200), Options(power=1.0, damping=damping))
    assert model.largest == 128
    largest = synthetic.table(1, (128,), seed=3)
    write = largest.writes[0]
    sample = Sample(machine="titan", source="", write=replace(write, nodes=1024), times=(1.0,))
    further = Dataset.from_samples(synthetic.TITAN, [sample])
    grown = extrapolation.predict(model, further)[0] - extrapolation.predict(model, largest)[0]
    term_alone = msgspec.structs.replace(model, damping=0.0)
    terms = (
        extrapolation.predict(term_alone, further)[0]
        - extrapolation.predict(term_alone, largest)[0]
    )
    assert terms < math.log(8)
    assert grown == pytest.approx(terms + damping * (math.log(8) - terms), abs=0.15)


def test_larger_scales_count_more() -> None:
    """A machine that is three times slower at 64 and 128 nodes: that is what goes on."""
    known = synthetic.table(200)
    slower = np.where(known.scales >= 64, 3.0, 1.0)
    model = extrapolation.fit(replace(known, seconds=known.seconds * slower), Options(power=1.0))
    errors = np.abs(extrapolation.predict(model, known) - np.log(slower * known.seconds))
    large = known.scales >= 64
    assert np.median(errors[large]) < 0.7 * np.median(errors[~large])


def test_trees_add_something_within_the_range_and_less_outside() -> None:
    rows = ROUGH.loads
    added = [BOOSTED.boosted.evaluate(row) for row in rows.tolist()]
    assert max(map(abs, added)) > 0.05
    negative = rows[int(np.argmin(added))]
    assert BOOSTED.boosted.evaluate((negative + 30).tolist()) >= -1e-6


def test_a_tag_has_capacities_of_its_own() -> None:
    """The same writes, three times slower by another library."""
    fast = synthetic.table(60)
    both = replace(
        fast.select(np.tile(np.arange(60), 2)),
        tags=("fast",) * 60 + ("slow",) * 60,
        seconds=np.concatenate([fast.seconds, 3 * fast.seconds]),
    )
    learned = training.train_extrapolation(both, seed=1)
    by_tag = {tag: learned.predict(fast.writes[5], tag=tag) for tag in ("fast", "slow", "new")}
    assert by_tag["slow"].seconds / by_tag["fast"].seconds == pytest.approx(3.0, rel=0.15)
    assert not by_tag["slow"].outside
    assert "tag 'new'" in by_tag["new"].outside[0]


def test_intervals_cover_as_often_as_they_say_where_writes_are_like_the_samples() -> None:
    """90% over many draws: 20 models, 200 new writes each."""
    covered = []
    for seed in range(20):
        learned = training.train_extrapolation(
            synthetic.table(80, (1, 2), noise=0.3, seed=seed), seed=seed
        )
        new = synthetic.table(200, (1, 2), noise=0.3, seed=1000 + seed)
        predictions = [learned.predict(write) for write in new.writes]
        inside = [not one.outside for one in predictions]
        held = [p.low <= t <= p.high for p, t in zip(predictions, new.seconds, strict=True)]
        covered.append(np.mean(np.array(held)[inside]))
    assert 0.87 <= np.mean(covered) <= 0.95


def test_a_quantile_is_the_next_errors() -> None:
    """The largest of nine errors covers the tenth with 90%; fewer errors cover nothing for sure."""
    assert intervals.quantile([float(k) for k in range(9)], 0.9) == 8.0
    assert intervals.quantile([float(k) for k in range(99)], 0.9) == 89.0


def test_an_interval_grows_with_the_octaves_outside() -> None:
    one = Interval(coverage=0.9, half=math.log(2), beyond=math.log(4), growth=0.5)
    assert one.around(8.0, 0.0) == pytest.approx((4.0, 16.0))
    assert one.around(8.0, 2.0) == pytest.approx((0.5, 128.0))


def test_outside_the_interval_is_what_larger_scales_needed() -> None:
    """A law that the term cannot know, a time that is squared in the scale, widens the interval."""
    known = synthetic.table(200)
    bent = training.train_extrapolation(
        replace(known, seconds=known.seconds * known.scales**1.5), seed=1
    )
    assert bent.model.interval.beyond > 1.0
    like = training.train_extrapolation(synthetic.table(200, noise=0.2), seed=1).model.interval
    assert 0.2 < like.beyond < 0.5


def test_samples_of_too_few_scales_do_not_say_how_it_widens() -> None:
    trained = training.train_extrapolation(
        synthetic.table(80, (1, 2), noise=0.2), seed=1
    ).model.interval
    assert (trained.beyond, trained.growth) == (trained.half, intervals.UNKNOWN_GROWTH)
