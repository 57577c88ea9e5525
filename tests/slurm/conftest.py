"""One Slurm for all tests, with penstock's hooks; each file has a deployment of its own."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm.cluster import Cluster
from slurm.site import HOOKS, install_hooks

LICENCE = "fs:3"
PATIENT = ("HOOK_SECONDS=8", "PENSTOCK_PATIENCE=5")
"""Hooks that give up later than they are made to: jobs are managed on a busy machine, too."""


@pytest.fixture(scope="session")
def short() -> Iterator[Path]:
    """A short path that every user can walk, for sockets and Slurm's files."""
    with tempfile.TemporaryDirectory(prefix="ps", dir="/tmp") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture(scope="session")
def run(short: Path) -> Path:
    """The folder of the node's agent."""
    return short / "run"


@pytest.fixture(scope="session")
def conflicts(short: Path) -> Path:
    """What job_submit.lua reads."""
    return short / "conflicts"


@pytest.fixture(scope="session")
def slurm(short: Path, run: Path, conflicts: Path) -> Iterator[Cluster]:
    plugin = short / "job_submit.lua"
    text = (HOOKS / plugin.name).read_text()
    usual = '"/run/penstock-slurm/conflicts"'
    assert usual in text
    plugin.write_text(text.replace(usual, f'"{conflicts}"'))
    settings = {
        **install_hooks(short / "hooks", run, *PATIENT),
        "Licenses": LICENCE,
        "JobSubmitPlugins": "lua",
    }
    (short / "slurm").mkdir()
    with Cluster(short / "slurm", settings=settings, files={plugin.name: plugin}) as cluster:
        yield cluster
