"""One Slurm for all tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm.cluster import Cluster


@pytest.fixture(scope="session")
def short() -> Iterator[Path]:
    """A short path that every user can walk, for sockets and Slurm's files."""
    with tempfile.TemporaryDirectory(prefix="ps", dir="/tmp") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture(scope="session")
def slurm(short: Path) -> Iterator[Cluster]:
    folder = short / "slurm"
    folder.mkdir()
    with Cluster(folder) as cluster:
        yield cluster
