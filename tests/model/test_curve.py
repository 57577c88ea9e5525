"""Bandwidth curves: what is known, what lies in between, what is not known."""

import pytest

from penstock.errors import InputError
from penstock.model import Curve
from penstock.model.load import Options, io_load

CURVE = Curve.of({8: 80.0, 0: 500.0, 1: 10.0, 2: 30.0, 4: 40.0})


def test_measured_and_interpolated() -> None:
    assert [CURVE.bandwidth(n) for n in (0, 1, 2, 3, 6, 8)] == [500, 10, 30, 35, 60, 80]


@pytest.mark.parametrize("count", [9, 100])
def test_beyond_the_measured_nothing_is_known(count: int) -> None:
    with pytest.raises(InputError, match="says nothing"):
        CURVE.bandwidth(count)


def test_nothing_is_interpolated_towards_direct_access() -> None:
    with pytest.raises(InputError, match="says nothing"):
        Curve.of({0: 500.0, 2: 30.0}).bandwidth(1)
    with pytest.raises(InputError, match="says nothing"):
        Curve.of({1: 500.0, 2: 30.0}).bandwidth(0)


def test_choices() -> None:
    assert CURVE.choices(5) == [0, 1, 2, 3, 4, 5]
    assert CURVE.choices(5, measured=True, direct=False) == [1, 2, 4]
    assert Curve.of({0: 5.0}).choices(8) == [0]


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({}, "at least one"),
        ({-1: 5.0}, "zero or more"),
        ({1: 0.0}, "positive"),
        ({1: -5.0}, "positive"),
        ({1: float("nan")}, "positive"),
        ({1: float("inf")}, "positive"),
    ],
)
def test_impossible_curves(points: dict[int, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Curve.of(points)


def test_counts_must_rise() -> None:
    with pytest.raises(InputError, match="must rise"):
        Curve(counts=(2, 1), bandwidths=(1.0, 1.0))


def test_what_a_count_means_for_a_job() -> None:
    """T_io = V / b; stress = n T_io / (T_cpu + T_io); CPUload = Q T_cpu / (T_cpu + T_io)."""
    options = Options.of(CURVE, [1, 2, 4, 8], nodes=10, compute=30.0, volume=300.0)
    assert options.io.tolist() == [30.0, 10.0, 7.5, 3.75]
    assert options.stress.tolist() == pytest.approx([0.5, 0.5, 4 * 7.5 / 37.5, 8 * 3.75 / 33.75])
    assert options.cpu.tolist() == pytest.approx([5.0, 7.5, 8.0, 10 * 30 / 33.75])
    assert (options.n_perf, options.n_sys) == (8, 1)


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ((10.0, 20.0, 30.0, 40.0), "ascent"),
        ((40.0, 30.0, 20.0, 10.0), "descent"),
        ((10.0, 40.0, 30.0, 20.0), "peak"),
        ((100.0, 95.0, 91.0, 99.0), "neutral"),
        # A dip: to the end that is higher.
        ((30.0, 5.0, 5.0, 40.0), "ascent"),
        ((40.0, 5.0, 5.0, 30.0), "descent"),
        # The peak's place counts, however little it stands out, unless all is flat.
        ((10.0, 30.0, 41.0, 40.0), "peak"),
    ],
)
def test_shapes(values: tuple[float, ...], shape: str) -> None:
    curve = Curve.of(dict(zip((1, 2, 4, 8), values, strict=True)))
    assert curve.shape() == shape
    # Another path, not a small count.
    assert Curve.of({0: 500.0} | dict(zip((1, 2, 4, 8), values, strict=True))).shape() == shape


def test_a_shape_depends_on_the_tolerance() -> None:
    curve = Curve.of({1: 90.0, 2: 100.0, 4: 95.0, 8: 92.0})
    assert curve.shape(0.1) == "neutral"
    assert curve.shape(0.05) == "peak"
    with pytest.raises(InputError, match="direct access alone"):
        Curve.of({0: 5.0}).shape()


def test_io_load_is_the_sum_of_stress_over_resources() -> None:
    """Equation (3): (1/N) sum of n T_io / (T_cpu + T_io)."""
    assert io_load([1, 4], [30.0, 30.0], [30.0, 7.5], 20) == pytest.approx((0.5 + 0.8) / 20)
    both = io_load([[1, 4], [2, 2]], [30.0, 30.0], [[30.0, 7.5], [10.0, 10.0]], 20)
    assert both.tolist() == pytest.approx([1.3 / 20, 1.0 / 20])
