"""Workload files of the command line: --io-ratio, --w-iter, and progress while reading."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock import units
from penstock.cli.common.options import option
from penstock.config import OWN, Loaded
from penstock.errors import InputError, error_prefix
from penstock.progress import progress
from penstock.sim import formats
from penstock.sim.as_live import AsLive
from penstock.sim.knowledge import Knowledge
from penstock.sim.workload import Workload

LARGE = 50_000_000
"""The size in bytes from which reading a workload file shows its progress."""

io_ratio = option(
    "--io-ratio",
    metavar="PART",
    type=float,
    help=".swf files: the part of a job's time that is I/O, as 0.1.",
)
w_iter = option(
    "--w-iter", metavar="TIME", help=".swf files: the length of one iteration, as '100 s'."
)


class Reader:
    """Reads the workload files of a command line."""

    def __init__(
        self,
        loaded: Loaded,
        files: tuple[Path, ...],
        io_ratio: float | None,
        w_iter: str | None,
    ) -> None:
        for file in files:
            formats.check_readable(file)
        swf = any(file.suffix.lower() == ".swf" for file in files)
        if not swf and (io_ratio is not None or w_iter is not None):
            raise InputError("--io-ratio and --w-iter are for .swf files; other files have I/O")
        with error_prefix("--w-iter"):
            self._w_iter = None if w_iter is None else units.seconds(w_iter)
        self._io_ratio = io_ratio
        self._site = loaded.config.site.site()

    def read(self, file: Path) -> Workload:
        """Return the workload in a file."""
        with show_progress(f"reading {file.name}", large=file.stat().st_size > LARGE) as watch:
            return formats.read(
                file, self._site, io_ratio=self._io_ratio, w_iter=self._w_iter, report=watch
            )


@contextmanager
def show_progress(label: str, *, large: bool) -> Iterator[formats.Report | None]:
    """Show how many jobs of a large file are read or written."""
    if not large:
        yield None
        return
    with progress(label, 0) as bar:
        yield bar.reach


def explain_window(window: tuple[float, float], loaded: Loaded) -> str:
    """Say why metrics are taken between these times."""
    begin, end = window
    if loaded.config.simulation.window is not None:
        why = "the window that was given"
    elif begin > 0:
        why = "the horizon of the file without its beginning and end (--window changes it)"
    else:
        return f"measured from 0 to {end:g} s: the whole run (--window changes it)"
    return f"measured from {begin:g} to {end:g} s: {why}; the makespan is that of the whole run"


def baseline_notes(loaded: Loaded) -> list[str]:
    """Say what isolated means where jobs run with other resources than the file names."""
    policy = loaded.config.allocation.policy
    if policy == OWN:
        return []
    return [
        f"isolated is with the resources of the file, not with those that {policy} gives: where "
        "these are faster, max_stretch and io_slowdown can be below 1, min_yield and efficiency "
        "above 1, and utilization above its bound"
    ]


def knowledge(loaded: Loaded) -> Knowledge:
    """Return how well policies know the jobs."""
    simulation = loaded.config.simulation
    with loaded.blame("simulation.knowledge"):
        return Knowledge.parse(simulation.knowledge, seed=simulation.seed)


def as_live(loaded: Loaded) -> AsLive | None:
    """Return what a live site adds to its policy, if it is to be simulated."""
    config = loaded.config
    return AsLive.of(config.live) if config.simulation.as_live else None
