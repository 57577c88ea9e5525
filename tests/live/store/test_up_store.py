"""penstock up --store: what is learnt is kept there; a store that cannot be used is told."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from live.store.old_stores import make_version_1, make_version_2

from penstock.learn.imported import Imported
from penstock.live.store import Family, Knowledge, Store, WriteBehind

PENSTOCK = [sys.executable, "-m", "penstock.cli"]
KNOWN = Imported(volume=1e9, w_iter=12.5, iterations=9)


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


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_older_version_is_used_and_nothing_of_it_is_lost(
    tmp_path: Path, version: int
) -> None:
    """A site is updated: what it knew is shown, jobs are numbered on, and new runs teach more."""
    url, state = f"sqlite:///{tmp_path}/kept.db", str(tmp_path / "s")
    if version == 1:
        make_version_1(url)
    else:
        with WriteBehind(Store(url)) as keeper:
            keeper.learn(Family(user="ann", executable="ior", nodes=4), Knowledge(imported=KNOWN))
        make_version_2(url)
    (tmp_path / "data").mkdir()
    up = ["up", "--root", str(tmp_path / "data"), "--io-nodes", "1", "--state", state]
    for run in range(2):
        assert penstock(*up, "--store", url).returncode == 0
        try:
            written = f"of={tmp_path}/data/x"
            job = ("dd", "if=/dev/zero", written, "bs=1M", "count=4")
            done = penstock("run", "--state", state, "--require", "--json", "--", *job)
            assert done.returncode == 0, done.stderr
            if version == 1:
                assert json.loads(done.stderr.splitlines()[-1])["job"] == f"dd.{8 + run}"
            shown = json.loads(penstock("curves", "show", "--state", state, "--json").stdout)
        finally:
            assert penstock("down", "--state", state).returncode == 0
        known = {one["application"]: one for one in shown}
        ior = known["/apps/ior" if version == 1 else "ior"]
        assert (ior["user"], ior["nodes"], ior["w_iter"]["median"]) == ("ann", 4, 12.5)
        assert ior["volume"]["median"] == 1e9
        assert "dd" in known


def test_a_store_that_cannot_be_used_is_told_and_nothing_is_up(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    up = ["up", "--root", str(tmp_path / "data"), "--io-nodes", "0", "--state", str(tmp_path / "s")]
    refused = penstock(*up, "--store", "nonsense")
    assert refused.returncode == 2
    assert "'nonsense' is not a URL" in refused.stderr
    assert penstock("status", "--state", str(tmp_path / "s")).returncode != 0
