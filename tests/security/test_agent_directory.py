"""The directory of a user's agent, /tmp/pa-UID, is made by that user alone."""

import os
import tempfile
from pathlib import Path

import pytest
from live.other_users import AS_ROOT, NOBODY

from penstock.errors import InputError
from penstock.live.protocol.hook_messages import AgentDirectory

pytestmark = [pytest.mark.security, AS_ROOT]


def test_a_strangers_link_opens_no_directory() -> None:
    """It led to the victim's home, whose mode became 0755 (where fs.protected_symlinks is 0)."""
    with tempfile.TemporaryDirectory(prefix="pa", dir="/dev/shm") as path:
        home, link = Path(path) / "home", Path(path) / "pa-0"
        home.mkdir(mode=0o700)
        link.symlink_to(home)
        os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
        with pytest.raises((InputError, OSError)):
            AgentDirectory(link).create()
        assert home.stat().st_mode & 0o777 == 0o700
        assert not list(home.iterdir())
