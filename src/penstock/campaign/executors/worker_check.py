"""Whether a worker may take part: the same Penstock, the same Python, the same numbers.

Results must not depend on who worked them out. A worker of another version of Penstock, or of what
it computes with, is refused before it works, and so is one that joins later, with its first piece.
"""

import hashlib
import os
import platform
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import penstock
from penstock.campaign.executors.executor import ExecutorError

Fitness = Mapping[str, str]
NUMBERS = ("numpy", "scipy", "scikit-learn")
DATA = "PENSTOCK_DATA"
"""Names the measured data of some studies, where there is any."""
ABSENT = "none"


class UnfitWorkerError(ExecutorError):
    """A worker would not give what this process gives."""


@cache
def fitness() -> Fitness:
    """Return what must agree between this process and the workers."""
    found = {
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "machine": platform.machine(),
        "Penstock": penstock.__version__,
        "source": _source(),
        DATA: os.environ.get(DATA) or ABSENT,
    }
    return found | {name: _version(name) for name in NUMBERS}


def unfit(theirs: Fitness, ours: Fitness) -> str:
    """Return in what a worker differs, in words; nothing if it does not."""
    return ", ".join(
        f"{key} {theirs.get(key, ABSENT)} instead of {value}"
        for key, value in ours.items()
        if theirs.get(key, ABSENT) != value
    )


def where_fit(ours: Fitness, work: Callable[..., Any], *args: Any) -> Any:
    """Do a piece of work, unless this process differs from the one that asks for it."""
    differs = unfit(fitness(), ours)
    if differs:
        raise UnfitWorkerError(f"a worker on {platform.node()} has {differs}; {ADVICE}")
    return work(*args)


ADVICE = "start the workers anew, from the environment that runs penstock"


def _source() -> str:
    """Return a digest of Penstock's Python files: versions stand still while one develops."""
    root = Path(penstock.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT
