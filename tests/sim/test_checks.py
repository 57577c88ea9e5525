"""Workloads that no engine should read, and what is said of them."""

from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.model import Site
from penstock.sim.checks import check
from penstock.sim.workload import Workload

GOOD: dict[str, Any] = {
    "compute": [1.0, 1.0, 1.0],
    "io": [1.0, 1.0, 1.0],
    "offsets": [0, 2, 3],
    "release": [0.0, 0.0],
    "ids": ["a", "b"],
}


def test_a_good_one() -> None:
    check(Workload(**GOOD))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": [0, 2]}, "offsets must rise"),
        ({"offsets": [0, 2, 4]}, "offsets must rise"),
        ({"offsets": [1, 2, 3]}, "offsets must rise"),
        ({"offsets": [0, 4, 3]}, "offsets must rise"),
        ({"io": [1.0, 1.0]}, "offsets must rise"),
        ({"nodes": [1]}, "nodes has 1 entries for 2 jobs"),
        ({"resources": [0]}, "resource_offsets must rise"),
        ({"offsets": [0, 3, 3]}, "'b' has no phases"),
        ({"io": [1.0, 1.0, -1.0]}, r"job 'b', phases\[0\], io is -1"),
        ({"compute": [1.0, np.nan, 1.0]}, r"job 'a', phases\[1\], compute is nan"),
        ({"compute": [0, 0, 0], "io": [0, 0, 1]}, "'a' does nothing"),
        ({"compute": [1e-300] * 3, "io": [0.0] * 3}, "on average"),
        ({"io": [1e300, 1e308, 1e308]}, "the limit is"),
        ({"release": [0.0, -1.0]}, "job 'b', release is -1"),
        ({"release": [0.0, np.inf]}, "job 'b', release is inf"),
        ({"max_share": [1.0, 1.1]}, "job 'b', max_share is 1.1"),
        ({"max_share": [0.0, 1.0]}, "job 'a', max_share is 0"),
        ({"resources": [0, 1]}, "uses resource 1, but the site has 0 to 0"),
        ({"resources": [0, 0, 0], "resource_offsets": [0, 1, 3]}, "'b' names a resource twice"),
        ({"resources": [0], "resource_offsets": [0, 1, 1]}, "'b' has no resources"),
        ({"nodes": [1, 0]}, "'b' has nodes = 0"),
        ({"nodes": [1, 9]}, "'b' needs 9 nodes, but the site has 8"),
        ({"ids": ["a", "a"]}, r"jobs\[1\].id 'a' is used twice"),
        ({"barrier": [0, 1], "after": [1, 0]}, "circle"),
        ({"barrier": [0, 2]}, "beyond the number of jobs"),
        ({"barrier": [0, 1], "after": [-1, 1]}, "circle"),
    ],
)
def test_a_wrong_one(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(Workload(**{**GOOD, **change}), Site(nodes=8))


def test_no_jobs() -> None:
    with pytest.raises(InputError, match="no jobs"):
        check(Workload(compute=[], io=[], offsets=[0], release=[]))
