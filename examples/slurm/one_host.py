"""A real Slurm on one host: munged, slurmctld and one slurmd per node, in their own directory.

Penstock's tests of Slurm (tests/slurm) and the example beside it use it.
"""

import os
import random
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

READY_WITHIN, ENDS_WITHIN, COMMAND_WITHIN, POLL = 60.0, 10.0, 30.0, 0.05
"""Seconds. Slurm does not announce that it is ready, so it is polled."""

CONF = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ctld_port}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=0
MpiDefault=none
KillWait=2
PrologFlags=Alloc
{more}
{nodes}
"""


HOOKS = Path(__file__).parents[2] / "deploy/slurm"


class ClusterError(Exception):
    """Slurm failed; the message has its logs."""


def install_hooks(
    folder: Path, run: Path, *more: str, penstock: Sequence[str] = ("penstock",)
) -> dict[str, Path]:
    """Install Penstock's hooks as a site does, with a penstock.conf; return slurm.conf's lines.

    `run` is the folder of the node's agent, `penstock` the words of the command.
    """
    folder.mkdir()
    folder.chmod(0o755)
    for hook in HOOKS.glob("*.sh"):
        shutil.copyfile(hook, folder / hook.name)
        (folder / hook.name).chmod(0o755)
    program = folder / "penstock"
    program.write_text(f'#!/bin/sh\nexec {" ".join(penstock)} "$@"\n')
    program.chmod(0o755)
    lines = [f"PENSTOCK={program}", f"PENSTOCK_RUN={run}", *more]
    conf = folder / "penstock.conf"
    conf.write_text("".join(f"{line}\n" for line in lines))
    conf.chmod(0o644)
    names = {"Prolog": "prolog.sh", "Epilog": "epilog.sh", "TaskProlog": "task-prolog.sh"}
    return {setting: folder / name for setting, name in names.items()}


class Cluster:
    """Runs from entry to exit of its context; nodes are n0, n1, ... in partitions `batch`, `old`.

    `settings` are further lines of slurm.conf. A node that a hook drains stays drained.
    """

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 4,
        settings: Mapping[str, object] | None = None,
        files: Mapping[str, Path] | None = None,
    ) -> None:
        self.folder = folder
        self.nodes = [f"n{k}" for k in range(nodes)]
        self.conf = folder / "slurm.conf"
        self._settings = settings or {}
        self._files = files or {}
        self._daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Cluster":
        try:
            self._configure()
            self._start_munge()
            self._daemon("slurmctld", "-D")
            for node in self.nodes:
                (self.folder / f"spool.{node}").mkdir()
                self._daemon("slurmd", "-D", "-N", node)
            self.wait(lambda: self.states() == dict.fromkeys(self.nodes, "idle"), "idle nodes")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(subprocess.SubprocessError, ClusterError):
            self.cancel_all()
        self._end()

    def environment(self) -> dict[str, str]:
        """Return the environment of Slurm's commands."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH"))}
        return kept | {"SLURM_CONF": str(self.conf)}

    def command(
        self,
        *words: str | Path,
        user: str | None = None,
        check: bool = True,
        env_of: Mapping[str, str] | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's commands, perhaps as another user, with a job's environment."""
        as_user = [] if user is None else ["setpriv", f"--reuid={user}", "--regid=nogroup"]
        as_user += [] if user is None else ["--clear-groups", "--inh-caps=-all"]
        done = subprocess.run(
            [*as_user, *map(str, words)],
            env=self.environment() | dict(env_of or {}),
            capture_output=True,
            text=True,
            timeout=options.pop("timeout", COMMAND_WITHIN),
            check=False,
            **({"cwd": "/"} | options),
        )
        if check and done.returncode:
            output = f"{words}: {done.returncode}\n{done.stdout}{done.stderr}\n{self.logs()}"
            raise ClusterError(output)
        return done

    def srun(
        self, *words: str | Path, user: str | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a job, and wait for it."""
        return self.command("srun", *words, user=user, **more)

    def sbatch(self, script: str, *options: str, user: str | None = None, **more: Any) -> str:
        """Submit a script; return the job's number."""
        text = script if script.startswith("#!") else f"#!/bin/sh\n{script}\n"
        words = ("sbatch", "--parsable", "--output=/dev/null", *options)
        return self.command(*words, user=user, input=text, **more).stdout.strip()

    def scontrol(self, *words: str, **more: Any) -> str:
        """Return what scontrol says."""
        return self.command("scontrol", *words, **more).stdout

    def state_of(self, job: str) -> str:
        """Return a job's state, in capitals."""
        output = self.scontrol("show", "job", job).split("JobState=")[1]
        return output.split()[0]

    def reason_of(self, job: str) -> str:
        """Return why a job waits."""
        return self.scontrol("show", "job", job).split("Reason=")[1].split()[0]

    def states(self) -> dict[str, str]:
        """Return the nodes' states: idle, allocated, drained, down, ..."""
        output = self.command("sinfo", "-h", "-N", "-o", "%N %T", check=False).stdout
        return dict(line.split() for line in output.splitlines())

    def await_end(self, job: str, within: float = COMMAND_WITHIN) -> str:
        """Wait until a job has ended, its epilogs too; return its last state."""

        def over() -> bool:
            return self.state_of(job) not in {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING"}

        self.wait(over, f"the end of job {job}", within)
        self.await_idle(within)
        return self.state_of(job)

    def await_idle(self, within: float = COMMAND_WITHIN) -> None:
        """Wait until no node has anything to do."""
        self.wait(lambda: set(self.states().values()) == {"idle"}, "idle nodes", within)

    def cancel_all(self) -> None:
        """Cancel all jobs, running or pending."""
        self.command("scancel", "--state=PENDING", "--quiet", check=False)
        self.command("scancel", "--state=RUNNING", "--quiet", "--signal=KILL", "--full")
        self.wait(lambda: not self.command("squeue", "-h").stdout.strip(), "an empty queue")

    def wait(self, condition: Callable[[], bool], what: str, within: float = READY_WITHIN) -> None:
        """Poll until the condition holds; ClusterError with the logs if it takes too long."""
        until = time.monotonic() + within
        while not condition():
            if time.monotonic() > until:
                raise ClusterError(f"no {what} within {within:g} s\n{self.logs()}")
            time.sleep(POLL)

    def logs(self) -> str:
        """Return the ends of all logs."""
        output = [str(self.states())] if self._daemons else []
        for path in sorted(self.folder.glob("*.log")):
            output += [f"--- {path.name}", *path.read_text(errors="replace").splitlines()[-15:]]
        return "\n".join(output)

    def _configure(self) -> None:
        # Users other than root submit, too: munge's socket and slurm.conf are for all.
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        host = socket.gethostname().split(".")[0]
        ports = _free_ports(1 + len(self.nodes))
        nodes = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            "CPUs=2 RealMemory=1000"
            for node, port in zip(self.nodes, ports[1:], strict=True)
        ]
        for name, default in (("batch", "YES"), ("old", "NO")):
            nodes.append(
                f"PartitionName={name} Nodes=ALL Default={default} State=UP OverSubscribe=FORCE:8"
            )
        more = "\n".join(f"{name}={value}" for name, value in self._settings.items())
        self.conf.write_text(
            CONF.format(
                host=host,
                ctld_port=ports[0],
                folder=self.folder,
                more=more,
                nodes="\n".join(nodes),
            )
        )
        self.conf.chmod(0o644)
        for name, source in self._files.items():
            (self.folder / name).write_text(source.read_text())
            (self.folder / name).chmod(0o644)

    def _start_munge(self) -> None:
        key, path = self.folder / "munge.key", self.folder / "munge.socket"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        options = [f"--{name}-file={self.folder}/munge.{name}" for name in ("pid", "log", "seed")]
        self._daemon(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={path}", *options
        )
        self.wait(path.exists, "munge socket")

    def _daemon(self, *words: str) -> None:
        with (self.folder / f"{words[0]}.out.log").open("ab") as out:
            self._daemons.append(
                subprocess.Popen(
                    ["setpriv", "--pdeathsig=TERM", *words],
                    env=self.environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    cwd="/",
                    start_new_session=True,
                )
            )

    def _end(self) -> None:
        # The last started first: slurmd reports to slurmctld, and both need munge.
        for daemon in reversed(self._daemons):
            daemon.terminate()
        until = time.monotonic() + ENDS_WITHIN
        for daemon in reversed(self._daemons):
            try:
                daemon.wait(max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._daemons.clear()


def _free_ports(count: int) -> list[int]:
    """Return ports that are free, and outside the range that the kernel assigns by itself."""
    pids: list[int] = []
    for port in random.SystemRandom().sample(range(20_000, 32_000), 1000):
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            pids.append(port)
            if len(pids) == count:
                return pids
    raise ClusterError(f"no {count} free ports")
