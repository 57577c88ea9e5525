"""Slurm: what its hooks tell the node's agent, its licences, and which partition conflicts least.

Hooks use no command of Slurm's. What asks Slurm (`in_step`) runs beside it, as its administrator.
"""

import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InputError
from penstock.files import replacing
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.hook_messages import (
    AdoptJob,
    AgentDirectory,
    JobEnvironment,
    JobList,
    ListJobs,
    ReleaseJob,
)

HOOK_PATIENCE = 1.0
"""Seconds that a hook waits for the agent: it has two in all, its own start included."""
COMMAND_WITHIN = 20.0
NAME_IN_COMMENT = re.compile(r"\bpenstock: job=(\S{1,200})")
_CPUS = re.compile(r"(\d+)(?:\(x(\d+)\))?")
_LICENCE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(\d+)")


# Hooks.


def adoption(environment: Mapping[str, str]) -> AdoptJob:
    """Return what a prolog's environment says of its job."""
    try:
        job, uid = environment["SLURM_JOB_ID"], int(environment["SLURM_JOB_UID"])
        named = NAME_IN_COMMENT.search(environment.get("SLURM_JOB_COMMENT", ""))
        return AdoptJob(
            job=job,
            name=f"slurm-{job}",
            uid=uid,
            gid=int(environment.get("SLURM_JOB_GID", uid)),
            user=environment.get("SLURM_JOB_USER", str(uid)),
            node=environment.get("SLURMD_NODENAME", ""),
            executable=named[1] if named else "",
            nodes=max(int(environment.get("SLURM_JOB_NUM_NODES", "1")), 1),
            processes=_cpus(environment.get("SLURM_JOB_CPUS_PER_NODE", "")) or None,
        )
    except KeyError as error:
        raise InputError(f"no {error.args[0]} in the environment; Slurm calls this hook") from None
    except ValueError as error:
        raise InputError(f"the environment is not a Slurm prolog's: {error}") from None


def release(environment: Mapping[str, str]) -> ReleaseJob:
    """Return what an epilog's environment says of its job."""
    if "SLURM_JOB_ID" not in environment:
        raise InputError("no SLURM_JOB_ID in the environment; Slurm calls this hook")
    code, _, number = environment.get("SLURM_JOB_EXIT_CODE2", "").partition(":")
    ended_by = int(number) if number.isdigit() else 0
    status = 128 + ended_by if ended_by else int(code) if code.isdigit() else 0
    return ReleaseJob(
        job=environment["SLURM_JOB_ID"],
        node=environment.get("SLURMD_NODENAME", ""),
        status=min(status, 255),
    )


def _cpus(text: str) -> int:
    """Return the CPUs in "2(x3),1"."""
    return sum(int(m[1]) * int(m[2] or 1) for m in _CPUS.finditer(text))


def tell(
    folder: AgentDirectory, message: AdoptJob | ReleaseJob, patience: float = HOOK_PATIENCE
) -> dict[str, str]:
    """Tell the node's agent; return the tasks' environment. OSError: it does not answer."""
    with ControlConnection(folder.control, timeout=patience) as agent:
        if isinstance(message, AdoptJob):
            return agent.ask(message, JobEnvironment).environment
        agent.ask(message, messages.Done)
        return {}


def kept(folder: AgentDirectory) -> list[str]:
    """Return the jobs that the node's agent keeps."""
    with ControlConnection(folder.control) as agent:
        return agent.ask(ListJobs(), JobList).jobs


# Licences: Slurm 22.05 cannot change how many there are, but a reservation keeps some back.


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """A file system's licences, as slurm.conf's `Licenses=` has them: "fs:8"."""

    name: str
    total: int

    @classmethod
    def parse(cls, text: str) -> "Licence":
        """Read NAME:TOTAL."""
        if not (found := _LICENCE.fullmatch(text)):
            raise InputError(f"licence {text!r}: give it as in slurm.conf's Licenses, like fs:8")
        return cls(name=found[1], total=int(found[2]))

    @property
    def reservation(self) -> str:
        """Return the name of the reservation that keeps licences back."""
        return f"penstock-{self.name}"


def commands(*words: str) -> str:
    """Return what one of Slurm's commands says; InputError: it fails."""
    try:
        told = subprocess.run(
            words, capture_output=True, text=True, timeout=COMMAND_WITHIN, check=False
        )
    except OSError as error:
        raise InputError(f"{words[0]}: {error.strerror}; is Slurm installed here?") from error
    except subprocess.TimeoutExpired:
        raise InputError(f"{words[0]} does not answer; is slurmctld up?") from None
    if told.returncode:
        why = " ".join((told.stderr or told.stdout).split())
        raise InputError(f"'{' '.join(words)}' failed: {why}")
    return told.stdout


def keep_back(licence: Licence, count: int, run: Callable[..., str] = commands) -> int:
    """Let Slurm give all licences but `count` to jobs; return how many were kept back before.

    Jobs that have theirs keep them; the count is kept back as they come free.
    """
    if not 0 <= count <= licence.total:
        raise InputError(f"{count} licences of {licence.total} {licence.name} cannot be kept back")
    before = kept_back(licence, run)
    if before is None and count:
        run(
            "scontrol",
            "create",
            "reservation",
            f"ReservationName={licence.reservation}",
            f"Licenses={licence.name}:{count}",
            "StartTime=now",
            "Duration=UNLIMITED",
            "Users=root",
            "Flags=ANY_NODES",
        )
    elif before is not None and not count:
        run("scontrol", "delete", f"ReservationName={licence.reservation}")
    elif before != count and count:
        told = f"Licenses={licence.name}:{count}"
        run("scontrol", "update", f"ReservationName={licence.reservation}", told)
    return before or 0


def kept_back(licence: Licence, run: Callable[..., str] = commands) -> int | None:
    """Return how many licences are kept back; None: there is no reservation."""
    for line in run("scontrol", "--oneliner", "show", "reservation").splitlines():
        words = dict(word.partition("=")[::2] for word in line.split())
        if words.get("ReservationName") == licence.reservation:
            found = _LICENCE.search(words.get("Licenses", ""))
            return int(found[2]) if found else 0
    return None


# What the controller's status means for Slurm.


def licences_to_keep(status: messages.Status, licence: Licence) -> int:
    """Return how many licences to keep back: one for each running job that waits for its turn.

    A job that waits shows that the file system has more I/O-heavy jobs than it serves at once.
    """
    waiting = sum(job.state == "running" and job.doing == "waiting" for job in status.jobs)
    return min(waiting, licence.total)


def conflicts(
    before: messages.Status, after: messages.Status, partitions: Mapping[str, str], seconds: float
) -> dict[str, float]:
    """Return what the jobs of each partition moved between two looks, in bytes a second.

    `partitions` has the partition of each Slurm job by number.
    """
    moved_before = {job.id: job.moved_bytes for job in before.jobs}
    scores = dict.fromkeys(partitions.values(), 0.0)
    for job in after.jobs:
        number = job.name.removeprefix("slurm-")
        if job.state == "running" and number in partitions:
            moved = job.moved_bytes - moved_before.get(job.id, 0)
            scores[partitions[number]] += max(moved, 0) / seconds
    return scores


def running_jobs(run: Callable[..., str] = commands) -> dict[str, str]:
    """Return the partition of every running Slurm job."""
    told = run("squeue", "--noheader", "--states=RUNNING", "--format=%A %P").splitlines()
    return dict(_pair(line) for line in told)


def all_partitions(run: Callable[..., str] = commands) -> Sequence[str]:
    """Return the partitions that take jobs."""
    told = run("sinfo", "--noheader", "--format=%R %a").splitlines()
    return [name for name, state in map(_pair, told) if state == "up"]


def _pair(line: str) -> tuple[str, str]:
    first, _, second = line.strip().partition(" ")
    return first, second.strip()


def write_conflicts(path: Path, scores: Mapping[str, float]) -> None:
    """Write what job_submit.lua reads: when, and a partition and its score a line."""
    lines = [f"{name} {score:.0f}\n" for name, score in sorted(scores.items(), key=_by_score)]
    with replacing(path) as partial:
        partial.write_text(f"# {time.time():.0f}\n" + "".join(lines))
        partial.chmod(0o644)


def _by_score(item: tuple[str, float]) -> tuple[float, str]:
    return item[1], item[0]
