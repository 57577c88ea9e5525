"""Libraries for processes of every user: the installed file, or a copy."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.agent.page_server import library
from penstock.live.protocol.preload import readable_by_all


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can walk to."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        Path(path).chmod(0o755)
        yield Path(path)


def test_a_library_that_all_can_read_is_used_as_it_is(folder: Path) -> None:
    file = folder / "lib.so"
    file.write_bytes(b"")
    file.chmod(0o644)
    assert readable_by_all(file, folder / "copies") == file
    assert not (folder / "copies").exists()


@pytest.mark.security
def test_another_user_loads_a_copy_of_a_library_that_is_hidden(folder: Path) -> None:
    hidden = folder / "hidden"
    hidden.mkdir(mode=0o700)
    file = hidden / "libclient.so"
    file.write_bytes(library().read_bytes())
    copy = readable_by_all(file, folder / "copies")
    assert copy.read_bytes() == file.read_bytes()
    assert readable_by_all(file, folder / "copies") == copy
    if os.geteuid() == 0:
        words = ["setpriv", "--reuid=nobody", "--clear-groups", "cat", "/proc/self/maps"]
        environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(copy)}
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, check=True, timeout=20
        )
        assert str(copy) in done.stdout
        assert done.stderr == ""
    file.write_bytes(file.read_bytes() + b"\0")
    assert readable_by_all(file, folder / "copies") != copy


def test_a_copy_that_cannot_be_read_either_is_refused(folder: Path) -> None:
    hidden = folder / "hidden"
    hidden.mkdir(mode=0o700)
    file = hidden / "lib.so"
    file.write_bytes(b"")
    with pytest.raises(InputError, match="install penstock where all can read it"):
        readable_by_all(file, hidden / "copies")
