"""Jobs that ended although no epilog said so: found by their processes, then asked of Slurm."""

import logging
import os
import re
import subprocess
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path

SQUEUE = "squeue"
SQUEUE_WITHIN = 10.0
_ANSWERS = {True: "no", False: "yes", None: "no answer"}
_STEP = re.compile(rb"^slurmstepd: \[(\d+)")

log = logging.getLogger("penstock.agent")


class Reaper:
    """Says which jobs are gone.

    A job without a process here may be an allocation whose user thinks: after `grace` seconds the
    batch system is asked. Where it does not answer, a job is gone after `forgotten` seconds.
    """

    def __init__(
        self,
        alive: Callable[[str], bool | None],
        *,
        grace: float = 60.0,
        forgotten: float = 3600.0,
        running: Callable[[], Collection[str]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._alive = alive
        self._grace, self._forgotten = grace, forgotten
        self._running = running or jobs_with_processes
        self._clock = clock
        self._seen: dict[str, float] = {}
        self._asked: dict[str, float] = {}

    def __call__(self, jobs: Collection[str]) -> list[str]:
        """Return those of the jobs that ended."""
        now, running = self._clock(), self._running()
        self._seen = {job: now if job in running else self._seen.get(job, now) for job in jobs}
        self._asked = {job: when for job, when in self._asked.items() if job in self._seen}
        return [job for job, seen in self._seen.items() if self._is_gone(job, seen, now)]

    def _is_gone(self, job: str, seen: float, now: float) -> bool:
        if now - max(seen, self._asked.get(job, seen)) < self._grace:
            return False
        self._asked[job] = now
        alive = self._alive(job)
        log.info("asked whether job %s has ended: %s", job, _ANSWERS[alive])
        if alive:
            self._seen[job] = now
        return alive is False or (alive is None and now - seen >= self._forgotten)


def jobs_with_processes(proc: Path = Path("/proc")) -> set[str]:
    """Return the Slurm jobs that have a process on this host, their step daemons included."""
    return {job for pid in _pids(proc) for job in _jobs_of(proc / pid)}


def _pids(proc: Path) -> Iterable[str]:
    return (entry.name for entry in os.scandir(proc) if entry.name.isdigit())


def _jobs_of(process: Path) -> Iterable[str]:
    # Processes end while they are read, and those of others may not be read.
    with suppress(OSError):
        if step := _STEP.match((process / "cmdline").read_bytes()):
            yield step[1].decode()
    with suppress(OSError):
        for variable in (process / "environ").read_bytes().split(b"\0"):
            if variable.startswith(b"SLURM_JOB_ID="):
                yield variable.partition(b"=")[2].decode(errors="replace")


def in_queue(job: str) -> bool | None:
    """Ask Slurm whether a job has not ended; None: it does not answer. Never for hooks."""
    try:
        told = subprocess.run(
            [SQUEUE, "--noheader", f"--jobs={job}", "--format=%T"],
            capture_output=True,
            text=True,
            timeout=SQUEUE_WITHIN,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if told.returncode == 0:
        return bool(told.stdout.strip())
    return False if "Invalid job id" in told.stderr else None
