"""Shares of jobs whose I/O is direct."""

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from limits import HANG

from penstock.live.controller.gate_slices import StrideScheduler

PENSTOCK = [sys.executable, "-m", "penstock.cli"]
POLICY = """
from penstock.policies.base import ByArrival, Own

class Heavy(ByArrival):
    def group(self, job):
        return Own.GROUP

    def weight(self, job):
        return 4.0 if job.id.startswith("heavy") else 1.0
"""


def test_slices_go_by_weight() -> None:
    slices = StrideScheduler()
    assert slices.share({"a": 4.0, "b": 1.0})
    given = Counter(slices.next() for _ in range(1000))
    assert given == {"a": 800, "b": 200}


def test_equal_weights_need_no_slices() -> None:
    assert not StrideScheduler().share({"a": 2.0, "b": 2.0})
    assert not StrideScheduler().share({"a": 2.0})
    assert not StrideScheduler().share({})


def test_who_comes_later_has_no_claim_on_what_went_before() -> None:
    slices = StrideScheduler()
    slices.share({"a": 1.0, "b": 2.0})
    for _ in range(300):
        slices.next()
    slices.share({"a": 1.0, "b": 2.0, "c": 1.0})
    given = Counter(slices.next() for _ in range(400))
    assert abs(given["c"] - 100) <= 2


@pytest.mark.rates
def test_direct_jobs_share_by_weight_on_an_emulated_file_system(tmp_path: Path) -> None:
    """Both write as fast as they may; the file system does 100 MiB/s."""
    (tmp_path / "data").mkdir()
    (tmp_path / "heavy.py").write_text(POLICY)
    state = ["--state", str(tmp_path / "s")]
    up = ["up", "--root", str(tmp_path / "data"), "--io-nodes", "0", "--mode", "enforce"]
    up += ["--policy", f"{tmp_path}/heavy.py:Heavy", "--emulate", "targets=1,rate=100MiB/s"]
    subprocess.run([*PENSTOCK, *up, *state], check=True, timeout=60)
    jobs = []
    try:
        for name in ("heavy", "light"):
            dd = ["dd", "if=/dev/zero", f"of={tmp_path}/data/{name}", "bs=256k", "count=2000"]
            jobs.append(subprocess.Popen([*PENSTOCK, "run", *state, "--name", name, "--", *dd]))
        files = [tmp_path / "data" / name for name in ("heavy", "light")]
        until = time.monotonic() + HANG
        while not all(file.exists() and file.stat().st_size > 2**20 for file in files):
            assert time.monotonic() < until
            time.sleep(0.05)
        before = [file.stat().st_size for file in files]
        time.sleep(3.0)
        heavy, light = (f.stat().st_size - b for f, b in zip(files, before, strict=True))
        assert 3.0 < heavy / light < 5.5
        assert heavy + light > 0.6 * 3.0 * 100 * 2**20
    finally:
        for job in jobs:
            job.terminate()
            job.wait(HANG)
        subprocess.run([*PENSTOCK, "down", *state], check=True, timeout=60)
