"""Templates: what Tables IV and V of paper write-models print, and every range covered."""

import msgspec
import numpy as np
import pytest

from penstock.learn.write_models.machine import load
from penstock.model.write import Write
from penstock.sim.evaluate import write_samples

MIB = write_samples.MIB


def writes_of(name: str, nodes: int, seed: int = 1) -> list[Write]:
    return list(write_samples.writes(load(name), nodes, np.random.default_rng(seed)))


@pytest.mark.parametrize(
    ("name", "nodes", "writes"),
    [
        ("cetus", 1, 5 * 10),
        ("cetus", 128, 5 * 10),
        ("cetus", 200, 5 * 7),
        ("cetus", 2000, 5 * 7 + 5 * 9),
        ("titan", 1, 8 * 7 * 5 + 4 * 3 * 5),
        ("titan", 800, 8 * 7 * 5),
        ("titan", 1000, 2 * 9 * 2),
    ],
)
def test_as_many_writes_as_the_loops_have(name: str, nodes: int, writes: int) -> None:
    assert len(writes_of(name, nodes)) == writes


def test_bursts_cover_every_range() -> None:
    bursts = sorted({write.burst / MIB for write in writes_of("cetus", 64) if write.cores == 1})
    for burst, (low, high) in zip(
        bursts, (*write_samples.BURSTS, *write_samples.LARGE_BURSTS), strict=True
    ):
        assert low <= burst <= high


def test_stripes_are_titans_to_choose_and_not_cetus() -> None:
    assert {write.stripe_count for write in writes_of("cetus", 64)} == {None}
    stripes = {write.stripe_count for write in writes_of("titan", 64)}
    assert None not in stripes
    assert all(1 <= count <= 64 for count in stripes if count is not None)
    assert max(count for count in stripes if count is not None) > 32


def test_stripes_are_as_many_as_there_are_targets() -> None:
    """ARCHER has 48; 33 to 64 are to be had up to there, and more than that never."""
    few = msgspec.structs.replace(load("titan").striping, targets=12, servers=4)
    small = msgspec.structs.replace(load("titan"), striping=few)
    for machine, most in ((load("archer"), 48), (small, 12)):
        chance = np.random.default_rng(1)
        counts = [
            w.stripe_count for _ in range(9) for w in write_samples.writes(machine, 64, chance)
        ]
        assert max(count for count in counts if count is not None) == most
        assert None not in counts


def test_the_seed_decides() -> None:
    assert writes_of("titan", 64, 1) == writes_of("titan", 64, 1)
    assert writes_of("titan", 64, 1) != writes_of("titan", 64, 2)


def test_the_scales_of_training_make_255_subsets() -> None:
    assert 2 ** len(write_samples.TRAINING_SCALES) - 1 == 255
    assert write_samples.TRAINING_SCALES[-1] == 128


def test_bursts_are_no_integers_whose_products_outgrow_arrays() -> None:
    assert all(isinstance(write.burst, float) for write in writes_of("titan", 128))
