"""Locks of a deployment's processes: held, or only looked at."""

import fcntl
import threading
from pathlib import Path

import pytest

from penstock.live.protocol.state_directory import hold_lock, lock_holder


def test_whoever_looks_for_a_holder_does_not_hold_the_lock(tmp_path: Path) -> None:
    """The fault: 'penstock up' said "already up" while an agent looked for the controller."""
    path = tmp_path / "lock"
    path.touch()
    with path.open() as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        end_of_look = threading.Timer(0.1, fcntl.flock, (looked_at, fcntl.LOCK_UN))
        end_of_look.start()
        with hold_lock(path):
            assert lock_holder(path) == 0
        end_of_look.join()


def test_a_lock_that_is_held_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold_lock(path), pytest.raises(BlockingIOError), hold_lock(path):
        pass
    assert lock_holder(path) is None
