"""Finds adopted jobs that ended without an epilog: by their processes, then by asking Slurm.

Runs in the agent of a node.
"""

import logging
import os
import re
import subprocess
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path

SQUEUE = "squeue"
SQUEUE_TIMEOUT = 10.0
_ANSWERS = {True: "no", False: "yes", None: "no answer"}
_STEP = re.compile(rb"slurmstepd: \[(\d+)")
_CGROUP = re.compile(
    rb"\d+:[^:]*:(?:/system\.slice)?/(?:[^/]*slurmstepd\.scope|slurm[^/]*/uid_\d+)/job_(\d+)\b"
)
"""Version 2 (SCOPE/job_N) and 1 (/slurm/uid_U/job_N), from the top: users have theirs below."""
_USERS = re.compile(rb"^Uid:\t([\d\t]+)$", re.MULTILINE)

log = logging.getLogger("penstock.agent")


class Reaper:
    """Returns which jobs have ended.

    A job without a process may be an idle interactive allocation, so `is_queued` asks the batch
    system once a job has had no process for `grace` seconds. If the batch system does not answer,
    a job counts as ended after `max_silence` seconds.
    """

    def __init__(
        self,
        is_queued: Callable[[str], bool | None],
        *,
        grace: float = 60.0,
        max_silence: float = 3600.0,
        running: Callable[[], Collection[str]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_queued = is_queued
        self._grace, self._max_silence = grace, max_silence
        self._running = running or jobs_with_processes
        self._clock = clock
        self._last_process: dict[str, float] = {}
        self._last_query: dict[str, float] = {}

    def __call__(self, jobs: Collection[str]) -> list[str]:
        """Return the jobs that have ended."""
        now, running = self._clock(), self._running()
        self._last_process = {
            job: now if job in running else self._last_process.get(job, now) for job in jobs
        }
        self._last_query = {j: t for j, t in self._last_query.items() if j in self._last_process}
        return [job for job, last in self._last_process.items() if self._has_ended(job, last, now)]

    def _has_ended(self, job: str, last_process: float, now: float) -> bool:
        if now - max(last_process, self._last_query.get(job, last_process)) < self._grace:
            return False
        self._last_query[job] = now
        queued = self._is_queued(job)
        log.info("asked whether job %s has ended: %s", job, _ANSWERS[queued])
        if queued:
            self._last_process[job] = now
        return queued is False or (queued is None and now - last_process >= self._max_silence)


def jobs_with_processes(proc: Path = Path("/proc")) -> set[str]:
    """Return the Slurm jobs that have a process on this host, as the kernel says.

    By the cgroups that Slurm puts a job's processes into, and by its step daemons, which are root's
    and run for as long as a step does. A process names itself, and its environment, as it likes.
    """
    return {job for pid in _pids(proc) for job in _jobs_of(proc / pid)}


def _pids(proc: Path) -> Iterable[str]:
    return (entry.name for entry in os.scandir(proc) if entry.name.isdigit())


def _jobs_of(process: Path) -> Iterable[str]:
    # A process may end while it is read; those of other users may not be readable.
    with suppress(OSError):
        for line in (process / "cgroup").read_bytes().splitlines():
            if cgroup := _CGROUP.match(line):
                yield cgroup[1].decode()
    with suppress(OSError):
        if (step := _STEP.match((process / "cmdline").read_bytes())) and _is_step_daemon(process):
            yield step[1].decode()


def _is_step_daemon(process: Path) -> bool:
    """Whether a process is a daemon of Slurm: by its users, as its directory's owner may lie."""
    program = (process / "exe").readlink().name.removesuffix(" (deleted)")
    users = _USERS.search((process / "status").read_bytes())
    if program != "slurmstepd" or users is None:
        return False
    return {int(user) for user in users[1].split()} <= {0, os.geteuid()}


def in_queue(job: str) -> bool | None:
    """Ask Slurm whether a job is queued or running, or return None without an answer.

    Never call it in a hook: slurmctld may be waiting for the hook.
    """
    try:
        result = subprocess.run(
            [SQUEUE, "--noheader", f"--jobs={job}", "--format=%T"],
            capture_output=True,
            text=True,
            timeout=SQUEUE_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if result.returncode == 0:
        return bool(result.stdout.strip())
    return False if "Invalid job id" in result.stderr else None
