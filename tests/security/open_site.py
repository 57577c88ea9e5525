"""A deployment that every user of this host may use."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from limits import HANG

from penstock.live.deployment import launcher
from penstock.live.protocol.state_directory import StateDirectory

PENSTOCK = (sys.executable, "-m", "penstock.cli")
FEW_DESCRIPTORS = ("sh", "-c", 'ulimit -n 256; exec "$@"', "sh")
"""Of 256 descriptors 192 are for connections, and half of these for one user's jobs."""


@contextmanager
def open_site(*options: str, limited: bool = False) -> Iterator[StateDirectory]:
    """Yield the state of a deployment with `--all-users`."""
    with tempfile.TemporaryDirectory(prefix="site", dir="/dev/shm") as path:
        folder = Path(path)
        folder.chmod(0o755)
        (folder / "root").mkdir()
        state = StateDirectory(folder / "state")
        where = ("--state", str(state.folder), "--root", str(folder / "root"))
        up = (*PENSTOCK, "up", *where, "--io-nodes", "0", "--all-users", *options)
        command = [*FEW_DESCRIPTORS, *up] if limited else [*up]
        subprocess.run(command, check=True, timeout=HANG, capture_output=True)
        try:
            yield state
        finally:
            launcher.down(state)
