"""The Slurm hooks: what the prolog and epilog of a job send to the agent of the node.

slurmd starts a hook for every job and waits for it. A hook uses no command of Slurm: slurmctld may
be waiting for the hook.
"""

import re
from collections.abc import Mapping

from penstock.errors import InputError
from penstock.live.batch.job_comment import job_partition, read_comment
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

HOOK_TIMEOUT = 1.0
"""Seconds that a hook waits for the agent, of two in all, which include its own start."""
MOST_REFUSED = 10
"""Refused hints that are logged."""
_CPUS = re.compile(r"(\d+)(?:\(x(\d+)\))?")


def adopt_message(environment: Mapping[str, str]) -> AdoptJob:
    """Return the message for the job that the environment of a prolog describes."""
    try:
        job, uid = environment["SLURM_JOB_ID"], int(environment["SLURM_JOB_UID"])
        application, wanted, refused = read_comment(environment.get("SLURM_JOB_COMMENT", ""))
        return AdoptJob(
            job=job,
            name=f"slurm-{job}",
            uid=uid,
            gid=int(environment.get("SLURM_JOB_GID", uid)),
            user=environment.get("SLURM_JOB_USER", str(uid)),
            node=environment.get("SLURMD_NODENAME", ""),
            executable=application,
            nodes=max(int(environment.get("SLURM_JOB_NUM_NODES", "1")), 1),
            processes=_cpus(environment.get("SLURM_JOB_CPUS_PER_NODE", "")) or None,
            partition=job_partition(environment),
            io_nodes=wanted.io_nodes,
            hints=wanted.hints,
            refused=tuple(refused[:MOST_REFUSED]),
        )
    except KeyError as error:
        raise InputError(f"no {error.args[0]} in the environment; Slurm calls this hook") from None
    except ValueError as error:
        raise InputError(f"the environment is not a Slurm prolog's: {error}") from None


def release_message(environment: Mapping[str, str]) -> ReleaseJob:
    """Return the message for the job that the environment of an epilog describes."""
    if "SLURM_JOB_ID" not in environment:
        raise InputError("no SLURM_JOB_ID in the environment; Slurm calls this hook")
    code, _, number = environment.get("SLURM_JOB_EXIT_CODE2", "").partition(":")
    signal = int(number) if number.isdigit() else 0
    status = 128 + signal if signal else int(code) if code.isdigit() else 0
    return ReleaseJob(
        job=environment["SLURM_JOB_ID"],
        node=environment.get("SLURMD_NODENAME", ""),
        status=min(status, 255),
    )


def _cpus(text: str) -> int:
    """Return the sum of CPUs in a list such as "2(x3),1"."""
    return sum(int(m[1]) * int(m[2] or 1) for m in _CPUS.finditer(text))


def send(
    agent: AgentDirectory, message: AdoptJob | ReleaseJob, timeout: float = HOOK_TIMEOUT
) -> dict[str, str]:
    """Send a message to the node's agent, or raise OSError; return the environment of tasks."""
    with ControlConnection(agent.control, timeout=timeout) as connection:
        if isinstance(message, AdoptJob):
            return connection.ask(message, JobEnvironment).environment
        connection.ask(message, messages.Done)
        return {}


def adopted_jobs(agent: AgentDirectory) -> list[str]:
    """Ask the node's agent which jobs it has adopted."""
    with ControlConnection(agent.control) as connection:
        return connection.ask(ListJobs(), JobList).jobs
