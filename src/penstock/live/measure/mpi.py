"""Starts ranks with mpiexec, of any MPI."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from penstock.errors import InputError

_MPI_TIMEOUT = 60.0
"""Seconds for two ranks to start."""
_ALONE = "a world of one"
_MPI_WORLD = f"""
from mpi4py import MPI
if MPI.COMM_WORLD.size != 2:
    raise SystemExit({_ALONE!r})
"""
"""Exit statuses say it: what ranks print may be interleaved, or lost as they end."""


def mpi_command(ranks: int, words: Sequence[str]) -> list[str]:
    """Return the command that starts `words` as `ranks` ranks, with any MPI."""
    root = ["--allow-run-as-root"] if os.getuid() == 0 and _open_mpi() else []
    oversubscribe = ["--oversubscribe"] if _open_mpi() else []
    return ["mpiexec", *root, *oversubscribe, "-n", str(ranks), *words]


def check_mpi() -> None:
    """Start two ranks, and raise InputError unless both belong to one MPI world."""
    if shutil.which("mpiexec") is None:
        raise InputError("--mpi: there is no mpiexec; install an MPI, or leave --mpi out")
    if importlib.util.find_spec("mpi4py") is None:
        raise InputError(
            "--mpi: mpi4py is not installed: install the extra 'mpi', in a checkout "
            "pip install '.[mpi]' (docs/get-started/install.md), or leave --mpi out"
        )
    try:
        result = subprocess.run(
            mpi_command(2, [sys.executable, "-P", "-c", _MPI_WORLD]),
            capture_output=True,
            text=True,
            check=False,
            timeout=_MPI_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"--mpi: mpiexec did not start two ranks in {_MPI_TIMEOUT:g} s") from None
    if _ALONE in result.stderr:
        raise InputError(
            "--mpi: mpiexec and mpi4py belong to different MPIs; "
            "put the mpiexec of the library that mpi4py loads first in PATH"
        )
    if result.returncode:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no message"]
        raise InputError(f"--mpi: mpiexec does not start mpi4py: {last[0]}")


def _open_mpi() -> bool:
    result = subprocess.run(["mpiexec", "--version"], capture_output=True, text=True, check=False)
    return "Open" in result.stdout
