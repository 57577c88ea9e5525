"""No thread of an I/O node keeps what the I/O node gives up: not those of libraries either."""

from pathlib import Path

import pytest
from live.conftest import folder
from live.ionode.real_node import RealNode
from live.other_users import AS_ROOT
from security.test_ionode_privileges import SETS, threads

__all__ = ["folder"]
pytestmark = [pytest.mark.security, AS_ROOT]


@pytest.mark.parametrize("carries", [True, False], ids=["carries", "permits"])
def test_threads_that_libraries_started_have_no_rights(folder: Path, carries: bool) -> None:
    """NumPy's OpenBLAS starts threads as it is imported, unless it is told that it has one CPU."""
    options = () if carries else ("--all-users",)
    environment = {"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "4"}
    where = folder if carries else None
    with RealNode(folder, 0, *options, carries=where, environment=environment) as node:
        for thread in threads(node):
            assert {name: int(thread[name], 16) for name in SETS} == dict.fromkeys(SETS, 0)
            assert thread["NoNewPrivs"] == "1"
