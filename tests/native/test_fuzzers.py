"""The fuzzers build, and their seeds and a few thousand cases more bring nothing to light."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# tests/fuzz/test_fuzzers.py tries more of these.
FEW = ("CONTROL_CASES=500", "COUNTER_CASES=500", "HTTP_CASES=200", "IO_NODE_CASES=2")


@pytest.mark.slow
@pytest.mark.security
@pytest.mark.timeout(1200)  # they are built
@pytest.mark.skipif(shutil.which("clang++") is None, reason="libFuzzer comes with clang++")
def test_hostile_clients() -> None:
    """`make soak` tries ten million."""
    result = subprocess.run(
        ["make", "fuzz", "CASES=50000", "NODE_CASES=2000", *FEW],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
