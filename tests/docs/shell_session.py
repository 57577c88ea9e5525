"""Commands as a reader types them: in a shell, or in this process where nothing but us is asked."""

import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from docs.pages import ROOT

from penstock.cli import main

LOG = "run.darshan"
"""A log of the reader's own; here one of those that come with PyDarshan stands for it."""
WITHIN = 1200
"""Seconds: a command that takes longer hangs, on a busy machine too."""
PURE = {
    *("simulate", "compare", "what-if", "allocate", "place", "pack", "predict", "advise"),
    *("machines", "generate", "policies", "config", "patterns", "samples", "write-model"),
    *("tuner", "man", "key"),
}
"""Verbs that start no processes: they can be run where the test is, without Python's start."""
_SHELL = re.compile(r"[|&;<>$`*]|~/|^\w+=")


@dataclass(frozen=True)
class Ended:
    """What came of a command."""

    status: int
    out: str
    err: str


def provide(directory: Path) -> None:
    """Put there what the commands need: the examples, and a log."""
    shutil.copytree(ROOT / "examples", directory / "examples")
    spec = importlib.util.find_spec("darshan")
    assert spec is not None
    assert spec.origin is not None
    logs = Path(spec.origin).parent.rglob("sample-badost.darshan")
    shutil.copy(next(iter(logs)), directory / LOG)


def typed(command: str, directory: Path) -> Ended:
    """Run a command in a directory, by the shell, with this Python's penstock."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        command,
        shell=True,
        cwd=directory,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
    )
    return Ended(result.returncode, result.stdout, result.stderr)


def quickly(command: str, directory: Path) -> Ended:
    """Run a command as `typed` does; in this process if it is one of ours that allows it."""
    words = shlex.split(command)
    words = words[: words.index("#")] if "#" in words else words
    live = words[1:3] in (["patterns", "measure"], ["tuner", "measure"])
    if words[0] != "penstock" or words[1] not in PURE or live or _SHELL.search(command):
        return typed(command, directory)
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(directory),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = main(words[1:])
    return Ended(status, out.getvalue(), err.getvalue())
