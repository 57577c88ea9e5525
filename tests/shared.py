"""What tests share, whichever worker runs them."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of this run that all its workers have in common."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def studies_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of studies in their smallest size, which are run once for all tests.

    Who holds `NAME.lock` may run one: into NAME.part, whose cells the next one takes; NAME is one
    that a command has ended.
    """
    folder = shared_folder(tmp_path_factory) / "studies"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that all workers know by its file."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
