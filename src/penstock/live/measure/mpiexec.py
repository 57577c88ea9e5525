"""Ranks under mpiexec: how they are started, and whether that works here."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from penstock.errors import InputError

_WITHIN = 60.0
"""Seconds in which two ranks have found each other, or never do."""
_WORLD = "from mpi4py import MPI; print('ranks', MPI.COMM_WORLD.size, flush=True)"


def command(ranks: int, words: Sequence[str]) -> list[str]:
    """Return the words that start a command as so many ranks, on any MPI."""
    root = ["--allow-run-as-root"] if os.getuid() == 0 and _open_mpi() else []
    many = ["--oversubscribe"] if _open_mpi() else []
    return ["mpiexec", *root, *many, "-n", str(ranks), *words]


def check() -> None:
    """Refuse --mpi where it cannot work: two ranks must find each other."""
    if shutil.which("mpiexec") is None:
        raise InputError("--mpi: there is no mpiexec; install an MPI, or leave --mpi out")
    if importlib.util.find_spec("mpi4py") is None:
        raise InputError(
            "--mpi: mpi4py is not installed: install the extra 'mpi', in a checkout "
            "pip install '.[mpi]' (docs/get-started/install.md), or leave --mpi out"
        )
    try:
        told = subprocess.run(
            command(2, [sys.executable, "-P", "-c", _WORLD]),
            capture_output=True,
            text=True,
            check=False,
            timeout=_WITHIN,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"--mpi: mpiexec did not start two ranks in {_WITHIN:g} s") from None
    if told.returncode:
        last = (told.stderr or told.stdout).strip().splitlines()[-1:] or ["it says nothing"]
        raise InputError(f"--mpi: mpiexec does not start mpi4py: {last[0]}")
    if told.stdout.split() != ["ranks", "2"] * 2:
        # Each rank takes itself for the only one.
        raise InputError(
            "--mpi: mpiexec and mpi4py are of different MPIs; "
            "put the mpiexec first in PATH whose library mpi4py loads"
        )


def _open_mpi() -> bool:
    told = subprocess.run(["mpiexec", "--version"], capture_output=True, text=True, check=False)
    return "Open" in told.stdout
