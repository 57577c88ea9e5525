"""The hosts of a Slurm allocation, and which ranks and I/O nodes of a measurement run on each."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.errors import InputError

RankPlacement = Literal["block", "cyclic"]
"""Which ranks run on a host: consecutive ones (block), or every n-th (cyclic)."""
OUTSIDE = "start it in an allocation, such as 'salloc -N 4 penstock ...' or in a batch script"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlacement:
    """The hosts of a measurement, in the order of the allocation."""

    hosts: tuple[str, ...]
    ranks: RankPlacement = "block"
    io_node_hosts: int = 0
    """The last hosts, which run I/O nodes only; 0: all hosts run both."""
    coherent: bool = False
    """The user declares that all hosts see the same data at all times."""

    def __post_init__(self) -> None:
        if self.io_node_hosts >= len(self.hosts):
            raise InputError(
                f"--io-node-hosts {self.io_node_hosts}: the allocation has {len(self.hosts)} "
                "hosts, and ranks need one; give fewer"
            )

    def host_of_io_node(self, number: int) -> str:
        """Return the host of an I/O node; they are dealt out in turn."""
        hosts = self.hosts[-self.io_node_hosts :] if self.io_node_hosts else self.hosts
        return hosts[number % len(hosts)]

    def ranks_of_hosts(self, processes: int) -> dict[str, list[int]]:
        """Return the ranks of each host that has any."""
        hosts = self.hosts[: len(self.hosts) - self.io_node_hosts]
        if self.ranks == "cyclic":
            dealt = {host: list(range(k, processes, len(hosts))) for k, host in enumerate(hosts)}
        else:
            size, larger = divmod(processes, len(hosts))  # the first `larger` hosts have one more
            begins = [k * size + min(k, larger) for k in range(len(hosts) + 1)]
            dealt = {host: list(range(begins[k], begins[k + 1])) for k, host in enumerate(hosts)}
        return {host: ranks for host, ranks in dealt.items() if ranks}

    @property
    def description(self) -> str:
        """What two runs must have in common to be compared: not the hosts' names."""
        alone = f", {self.io_node_hosts} of them for I/O nodes" if self.io_node_hosts else ""
        return f"{len(self.hosts)}, ranks {self.ranks}{alone}"


def has_several_hosts(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this process is in an allocation of several hosts."""
    count = environment.get("SLURM_JOB_NUM_NODES", "")
    return "SLURM_JOB_ID" in environment and count.isdigit() and int(count) > 1


def allocated_hosts(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the names of the hosts of the allocation, or raise InputError without one."""
    nodes = environment.get("SLURM_JOB_NODELIST", "")
    if "SLURM_JOB_ID" not in environment or not nodes:
        raise InputError(f"--slurm: this is no allocation of Slurm; {OUTSIDE}")
    tasks = environment.get("SLURM_STEP_NUM_TASKS", "1")
    if tasks != "1":
        raise InputError(
            f"srun has started this command {tasks} times; start it once, without srun: "
            "it starts the ranks on all hosts itself"
        )
    if shutil.which("srun") is None or shutil.which("scontrol") is None:
        raise InputError("--slurm: there is no srun or no scontrol in PATH; both are needed")
    words = ["scontrol", "show", "hostnames", nodes]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    hosts = tuple(done.stdout.split())
    if done.returncode or not hosts:
        raise InputError(
            f"--slurm: scontrol does not know the hosts {nodes}: {done.stderr.strip()}"
        )
    return hosts


def srun_command(hosts: int, words: list[str]) -> list[str]:
    """Return the command that starts `words` once on every host of the allocation.

    The step shares the hosts with other steps, and gets all their processors.
    """
    count = str(hosts)
    step = ["--nodes", count, "--ntasks", count, "--ntasks-per-node=1"]
    return ["srun", *step, "--overlap", "--cpu-bind=none", "--kill-on-bad-exit=0", *words]
