"""penstock up --store: what is learnt is kept there; a store that cannot be used is told."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.live.store import Store

PENSTOCK = [sys.executable, "-m", "penstock.cli"]


def penstock(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["env", *(f"{k}={v}" for k, v in environment.items()), *PENSTOCK, *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("by", ["flag", "environment"])
def test_jobs_are_kept_in_the_store_that_was_said(tmp_path: Path, by: str) -> None:
    root, state, url = tmp_path / "data", str(tmp_path / "s"), f"sqlite:///{tmp_path}/kept.db"
    root.mkdir()
    options = ["--store", url] if by == "flag" else []
    environment = {} if by == "flag" else {"PENSTOCK_STORE": url}
    up = ["up", "--root", str(root), "--io-nodes", "0", "--state", state, *options]
    assert penstock(*up, **environment).returncode == 0
    try:
        assert penstock("run", "--state", state, "--name", "kept", "--", "true").returncode == 0
    finally:
        assert penstock("down", "--state", state).returncode == 0
    with Store(url) as store:
        assert store.ended("kept.1") is not None
    assert not (tmp_path / "s/store.db").exists()


def test_a_store_that_cannot_be_used_is_told_and_nothing_is_up(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    up = ["up", "--root", str(tmp_path / "data"), "--io-nodes", "0", "--state", str(tmp_path / "s")]
    refused = penstock(*up, "--store", "nonsense")
    assert refused.returncode == 2
    assert "'nonsense' is not a URL" in refused.stderr
    assert penstock("status", "--state", str(tmp_path / "s")).returncode != 0
