"""The Slurm queue: the partition of each running job, and the I/O load of each partition.

Runs in `penstock slurm`, as Slurm's administrator; job_submit.lua reads the loads.
"""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from penstock.errors import InputError
from penstock.files import replacing
from penstock.live.protocol import messages

COMMAND_TIMEOUT = 20.0


def run_command(*words: str) -> str:
    """Return the output of a Slurm command, or raise InputError."""
    try:
        result = subprocess.run(
            words, capture_output=True, text=True, timeout=COMMAND_TIMEOUT, check=False
        )
    except OSError as error:
        raise InputError(f"{words[0]}: {error.strerror}; is Slurm installed here?") from error
    except subprocess.TimeoutExpired:
        raise InputError(f"{words[0]} does not answer; is slurmctld up?") from None
    if result.returncode:
        output = " ".join((result.stderr or result.stdout).split())
        raise InputError(f"'{' '.join(words)}' failed: {output}")
    return result.stdout


def running_jobs(run: Callable[..., str] = run_command) -> dict[str, str]:
    """Return the partition of every running job, by its number."""
    lines = run("squeue", "--noheader", "--states=RUNNING", "--format=%A %P").splitlines()
    return dict(map(_pair, lines))


def available_partitions(run: Callable[..., str] = run_command) -> Sequence[str]:
    """Return the partitions that accept jobs."""
    lines = run("sinfo", "--noheader", "--format=%R %a").splitlines()
    return [name for name, state in map(_pair, lines) if state == "up"]


def _pair(line: str) -> tuple[str, str]:
    first, _, second = line.strip().partition(" ")
    return first, second.strip()


def partition_loads(
    before: messages.Status, after: messages.Status, partitions: Mapping[str, str], seconds: float
) -> dict[str, float]:
    """Return the bytes per second that the jobs of each partition moved between two states.

    `partitions` has the partition of each running job, by its number.
    """
    moved_before = {job.id: job.moved_bytes for job in before.jobs}
    loads = dict.fromkeys(partitions.values(), 0.0)
    for job in after.jobs:
        number = job.name.removeprefix("slurm-")
        if job.state == "running" and number in partitions:
            moved = job.moved_bytes - moved_before.get(job.id, 0)
            loads[partitions[number]] += max(moved, 0) / seconds
    return loads


def write_loads(path: Path, loads: Mapping[str, float]) -> None:
    """Write the file that job_submit.lua reads: the time, then one line per partition."""
    ascending = sorted(loads.items(), key=lambda item: (item[1], item[0]))
    lines = [f"{name} {load:.0f}\n" for name, load in ascending]
    with replacing(path) as partial:
        partial.write_text(f"# {time.time():.0f}\n" + "".join(lines))
        partial.chmod(0o644)
