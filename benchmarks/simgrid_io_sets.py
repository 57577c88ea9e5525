"""The IO-SETS scenario on SimGrid (Debian: ``apt-get install libsimgrid-dev``).

SimGrid elsewhere than in the system's own folders: name its prefix in
``SIMGRID_PREFIX``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from numpy.typing import ArrayLike
from workload_file import Seconds, Workload, read_phases, write_workload

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "simgrid" / "io_sets.cpp"


def build() -> Path:
    """Compile the simulator unless an up-to-date one is there; return its path."""
    prefix = os.environ.get("SIMGRID_PREFIX")
    name = Path(prefix).resolve().as_posix().strip("/").replace("/", "-") if prefix else "system"
    program = HERE / "build" / f"simgrid_io_sets-{name}"
    if program.exists() and program.stat().st_mtime >= SOURCE.stat().st_mtime:
        return program
    program.parent.mkdir(exist_ok=True)
    search = (
        [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"] if prefix else []
    )
    compiler = os.environ.get("CXX", "g++")
    options = ["-std=c++20", "-O2", "-DNDEBUG", "-Wall", "-Wextra"]
    subprocess.run(
        [compiler, *options, *search, str(SOURCE), "-lsimgrid", "-o", str(program)], check=True
    )
    return program


def version() -> str:
    """The SimGrid that `run` measures, such as "3.32"."""
    answer = subprocess.run(
        [str(build()), "--version"], check=True, stdout=subprocess.PIPE, text=True
    )
    match = re.search(r"SimGrid version (\S+)", answer.stdout)
    return match.group(1) if match else "unknown"


def run(
    workload: Workload, group: ArrayLike, weight: ArrayLike, *, computing: str = "hosts"
) -> tuple[Seconds, Seconds, float]:
    """Simulate; return when each I/O was requested, when it ended, and the wall seconds.

    ``computing`` is "hosts" (jobs execute on hosts of their own, as the paper's
    simulator has it) or "delays" (the fastest form we found).

    ``group`` is -1 for a job that never waits for a turn; requests of the very
    same instant queue in SimGrid's own order, not by job. The seconds cover
    SimGrid's event loop alone: neither its start-up, nor the files, nor the
    creation of the platform and the actors.
    """
    program = build()
    with tempfile.TemporaryDirectory() as scratch:
        workload_path = Path(scratch, "workload")
        phases_path = Path(scratch, "phases")
        write_workload(workload_path, workload, group, weight)
        answer = subprocess.run(
            [str(program), str(workload_path), str(phases_path), computing],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        request, end = read_phases(phases_path)
    return request, end, json.loads(answer.stdout)["seconds"]
