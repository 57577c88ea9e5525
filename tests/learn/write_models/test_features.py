"""Tables II and III of paper write-models, entry by entry, and where our lists depart from them.

The paper counts 41 features for GPFS: 34 of Table II, 4 across stages, 3 of interference. It counts
30 for Lustre: Table III prints 28, of which four (m, n and their inverses) are there twice, so 24;
3 across stages, 3 of interference. Interference repeats columns: m, 1/(m n K), and m/(m n K), which
is 1/(n K). That leaves 38 and 27 distinct ones.
"""

from collections import Counter

import msgspec
import numpy as np
import pytest

from penstock.learn.write_models import features
from penstock.learn.write_models.machine import Machine, load
from penstock.learn.write_models.parameters import parameters
from penstock.model.write import Write

CETUS, TITAN = load("cetus"), load("titan")


def both(*names: str) -> list[str]:
    return [one for name in names for one in (name, f"1/({name})" if "*" in name else f"1/{name}")]


TABLE_II = [
    *both("m*n", "s_io*n", "n_io"),
    *("m*n*n_sub", "s_io*n*n_sub"),
    *both("n*K", "K", "m", "n"),
    *both("s_b*n*K", "n_b", "s_l*n*K", "n_l"),
    *both("m*n*K"),
    *both("n_s", "n_nsds", "n_d", "n_nsd"),
]
TABLE_III = [
    *both("m*n", "n", "m"),
    *both("n*K", "K", "m", "n"),
    *both("s_r*n*K", "n_r"),
    *both("m*n*K"),
    *both("s_oss", "n_oss", "s_ost", "n_ost"),
]
INTERFERENCE = ["m", "1/(m*n*K)", "m/(m*n*K)"]
BESIDE = both("s_io*n*K", "n_io")
"""The I/O node as a stage of its own: the paper's chosen model names s_io n K, Table II does not.
n_io is in Table II already, under metadata."""


def names(machine: Machine) -> Counter[str]:
    return Counter(one.name for one in features.all_features(machine))


def test_cetus_has_table_ii() -> None:
    assert len(TABLE_II) == 34
    across = [f"({a})*({b})" for a, b in CETUS.cross]
    assert len(TABLE_II + across + INTERFERENCE) == 41
    assert names(CETUS) == Counter(TABLE_II + BESIDE + across + INTERFERENCE)


def test_titan_has_table_iii() -> None:
    assert (len(TABLE_III), len(set(TABLE_III))) == (28, 24)
    across = [f"({a})*({b})" for a, b in TITAN.cross]
    assert len(set(TABLE_III)) + len(across + INTERFERENCE) == 30
    assert names(TITAN) == Counter(TABLE_III + across + INTERFERENCE)


@pytest.mark.parametrize(("machine", "distinct"), [(CETUS, 38 + 2), (TITAN, 27)])
def test_columns_are_distinct(machine: Machine, distinct: int) -> None:
    assert len(features.features(machine)) == distinct


def test_each_value_is_its_product() -> None:
    write = Write(nodes=200, cores=2, burst=20.0 * 2**20)
    values = parameters(CETUS, write)
    by_name = {one.name: one.value(values) for one in features.all_features(CETUS)}
    mnk = 200 * 2 * 20 * 2**20
    assert by_name["s_io*n*n_sub"] == 128 * 2 * 16
    assert by_name["m*n*n_sub"] == 200 * 2 * 16
    assert by_name["1/K"] == 1 / (20 * 2**20)
    assert by_name["1/(m*n*K)"] == pytest.approx(1 / mnk)
    assert by_name["m/(m*n*K)"] == pytest.approx(200 / mnk)
    assert by_name["(s_b*n*K)*(n_nsds)"] == pytest.approx(
        64 * 2 * 20 * 2**20 * (48 - 48 * (45 / 48) ** 400)
    )


def test_no_subblock_is_zero_and_has_no_inverse() -> None:
    loads = parameters(CETUS, Write(nodes=4, cores=2, burst=8.0 * 2**20))
    values = {one.name: one.value(loads) for one in features.features(CETUS)}
    assert values["m*n*n_sub"] == 0
    assert not any("n_sub" in name for name in values if name.startswith("1/"))


def test_on_cetus_bridge_and_link_say_the_same() -> None:
    """Both have 64 nodes behind a component: five pairs of columns are one, whatever is written."""
    chance = np.random.default_rng(1)
    writes = [
        Write(nodes=9, cores=4, burst=1e7 * k, placement=tuple(chance.choice(4096, 9, False)))
        for k in range(1, 60)
    ]
    columns = features.matrix(CETUS, writes).T
    names = [one.name for one in features.features(CETUS)]
    same = features.twins(CETUS)
    assert same == {
        "s_l*n*K": "s_b*n*K",
        "1/(s_l*n*K)": "1/(s_b*n*K)",
        "n_l": "n_b",
        "1/n_l": "1/n_b",
        "(s_l*n*K)*(n_nsds)": "(s_b*n*K)*(n_nsds)",
    }
    for one, other in same.items():
        assert (columns[names.index(one)] == columns[names.index(other)]).all()
    assert len(names) - len(same) == 35
    assert features.twins(TITAN) == {}


def test_stages_of_another_size_say_something_else() -> None:
    stages = tuple(
        msgspec.structs.replace(one, nodes_each=32) if one.symbol == "l" else one
        for one in CETUS.stage
    )
    assert features.twins(msgspec.structs.replace(CETUS, stage=stages)) == {}
