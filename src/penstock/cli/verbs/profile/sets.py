"""penstock profile --sets: which sets a site's jobs fall into, and how often sets meet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock import units
from penstock.cli.common.output import emit_json, emit_table
from penstock.cli.common.terminal import echo
from penstock.errors import InputError, error_prefix
from penstock.learn.profiles import Profile
from penstock.sim import formats
from penstock.sim.evaluate import site_sets
from penstock.sim.evaluate.site_sets import JobTimes, Limits, SiteSets
from penstock.units import show_count, show_seconds


class SetCounter:
    """Collects the times of jobs, and prints what is to be said of their sets."""

    def __init__(self, least_bandwidth: str, least_phases: int, window: str) -> None:
        with error_prefix("--least-bandwidth"):
            bandwidth = units.bandwidth(least_bandwidth)
        with error_prefix("--window"):
            seconds = units.seconds(window)
            self._limits = Limits(bandwidth=bandwidth, phases=least_phases, window=seconds)
        self._bandwidth = f"{bandwidth / 1e6:g} MB/s"
        self._jobs: list[JobTimes] = []

    def add(self, profile: Profile) -> None:
        """Take the times of a run."""
        self._jobs.append(site_sets.of_profile(profile))

    @staticmethod
    def is_workload(paths: Sequence[Path]) -> bool:
        """Whether a path is a workload file, not a log or a directory of logs."""
        return any(formats.suffix(path) in formats.MEMORY_PER_BYTE for path in paths)

    def add_workload(self, files: Sequence[Path], results: Sequence[Path]) -> None:
        """Take the times of a workload's jobs, as if each ran alone."""
        if results:
            raise InputError("--out, --workload and --html are for logs; leave them out")
        if len(files) > 1:
            raise InputError(
                "--sets takes logs, or one workload file: the times of several have no common start"
            )
        self._jobs.extend(site_sets.of_workload(formats.read(files[0])))

    def show(self, source: Path, *, as_json: bool) -> None:
        """Print what was counted."""
        sets = site_sets.count(self._jobs, self._limits)
        if as_json:
            fields: dict[str, Any] = msgspec.to_builtins(sets, str_keys=True)
            answer = msgspec.to_builtins(sets.answer)
            emit_json({"limits": self._limits, **fields, "answer": answer})
            return
        self._jobs_line(sets)
        if sets.jobs:
            _tables(sets, self._limits.window)
        echo(f"\nIs set-10 worth it here? {sets.answer.sentence}")
        echo(f"This is true of a file system only if {source} has all of its jobs.")

    def _jobs_line(self, sets: SiteSets) -> None:
        least = show_count(self._limits.phases, "I/O phase")
        if sets.unknown_bandwidth < sets.jobs:
            least += f" and {self._bandwidth}"
        echo(
            f"{show_count(sets.jobs, 'job')} with at least {least}; left out: "
            f"{sets.few_phases:,} with fewer phases, {sets.slow:,} below {self._bandwidth}"
        )
        if sets.unknown_bandwidth:
            echo(
                f"the bandwidth of {show_count(sets.unknown_bandwidth, 'job')} is not known; "
                "these count"
            )


def _tables(sets: SiteSets, window: float) -> None:
    rows = [
        (f"S_{number}", _w_iter(number), f"{jobs:,}", f"{jobs / sets.jobs:.2%}")
        for number, jobs in sets.jobs_by_set.items()
    ]
    echo()
    emit_table(("set", "w_iter", "jobs", "share"), rows, text=("w_iter",))
    echo(f"\nwindows of {show_seconds(window)} in which these jobs ran: {sets.windows:,}")
    by_running, by_io = sets.windows_by_sets, sets.windows_by_sets_in_io
    windows = [
        (show_count(n, "set"), *(_part(by.get(n, 0), sets.windows) for by in (by_running, by_io)))
        for n in sorted({*by_running, *by_io})
    ]
    emit_table(("windows with", "of running jobs", "in I/O at one time"), windows)
    echo(
        f"\n{show_seconds(sets.io_seconds)} in I/O, summed over jobs; another job was in I/O for "
        f"{sets.shared:.1%} of it, one of the same set for {sets.shared_in_set:.1%}, one of "
        f"another set for {sets.shared_between_sets:.1%}"
    )


def _part(count: int, total: int) -> str:
    return f"{count:,} ({count / total:.2%})"


def _w_iter(number: int) -> str:
    """Return the w_iter whose log10 rounds to the number of a set."""
    low, high = (show_seconds(10.0 ** (number + half)) for half in (-0.5, 0.5))
    return f"{low} to {high}"
