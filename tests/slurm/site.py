"""A deployment and its node's agent, for the jobs of a Slurm whose hooks are deploy/slurm's."""

import grp
import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import one_host
from limits import HANG
from live.other_users import command_as
from one_host import HOOKS
from slurm.cluster import Cluster

from penstock.live.batch.hooks import adopted_jobs
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.hook_messages import AgentDirectory
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.state_directory import StateDirectory

__all__ = ["HOOKS", "PENSTOCK", "WAIT", "Site", "install_hooks"]
PENSTOCK = (sys.executable, "-P", "-m", "penstock.cli")
WAIT = HANG


def install_hooks(folder: Path, run: Path, *more: str) -> dict[str, Path]:
    """Put the hooks where a site would, for the penstock that is tested; return the settings."""
    return one_host.install_hooks(folder, run, *more, penstock=PENSTOCK)


class Site:
    """Controller, two I/O nodes and an agent; a context manager."""

    def __init__(self, folder: Path, run: Path, *options: str, user: str = "root") -> None:
        self.root = folder / "data"
        self.state = StateDirectory(folder / "state")
        self.run = AgentDirectory(run)
        self._options, self._user = options, user
        self.agent: subprocess.Popen[str] | None = None
        for path, mode in ((folder, 0o755), (self.root, 0o1777), (self.state.folder, 0o700)):
            path.mkdir()
            path.chmod(mode)
        shutil.chown(self.state.folder, user, grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name)

    def __enter__(self) -> "Site":
        self.up()
        try:
            self.start_agent()
        except BaseException:
            self._penstock("down")
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end_agent()
        self._penstock("down")

    def up(self) -> None:
        """Bring the deployment up; it may have been taken down before."""
        self._penstock("up", "--io-nodes", "2", "--root", str(self.root), *self._options)

    def _penstock(self, verb: str, *options: str) -> None:
        """Run a verb as the user that the deployment is of."""
        command = [*PENSTOCK, verb, "--state", str(self.state.folder), *options]
        if self._user != "root":
            command = command_as(self._user, *command)
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, cwd=self.root
        )
        assert done.returncode == 0, done.stderr

    def start_agent(self, *options: str, **environment: str) -> int:
        """Start the agent and wait until it serves; return its process id."""
        command = [*PENSTOCK, "agent", "--json", "--state", self.state.folder]
        with (self.state.folder / "agent.log").open("ab") as log:
            self.agent = subprocess.Popen(
                [*map(str, command), "--run", str(self.run.path), *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | environment,
            )
        assert self.agent.stdout is not None
        assert self.agent.stdout.readline() == "{\n", self.log()
        return self.agent.pid

    def end_agent(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the agent, if there is one, with a signal."""
        if self.agent is not None:
            self.agent.send_signal(signal.SIGCONT)
            self.agent.send_signal(number)
            self.agent.wait(WAIT)
            assert self.agent.stdout is not None
            self.agent.stdout.close()
            self.agent = None

    def log(self) -> str:
        """Return what the agent logged."""
        return (self.state.folder / "agent.log").read_text()

    def doing(self, number: str) -> list[object]:
        """Return what a Slurm job does at the moment: computing, waiting or transferring."""
        return [job.doing for job in self.jobs(number)]

    def forwards(self, number: str) -> bool:
        """Say whether anything of a Slurm job has been forwarded."""
        return any(job.forwarded_bytes for job in self.jobs(number))

    def job(self, number: str) -> JobRecord:
        """Return what the controller knows of a Slurm job that it took in once."""
        (job,) = self.jobs(number)
        return job

    def status(self) -> messages.Status:
        """Return what the controller knows."""
        return launcher.ask(self.state, messages.GetStatus(), messages.Status)

    def latest(self) -> JobRecord:
        """Return what the controller knows of the job that began last."""
        return max(self.status().jobs, key=lambda job: job.serial)

    def jobs(self, number: str) -> list[JobRecord]:
        """Return what the controller knows under a Slurm job's number, the latest last."""
        return [job for job in self.status().jobs if job.name == f"slurm-{number}"]

    def await_end(self, slurm: Cluster, job: str) -> str:
        """Wait until Slurm and the agent are done with a job; return its state.

        An epilog that the agent does not answer at once does not wait for it.
        """
        state = slurm.await_end(job)
        slurm.wait(lambda: job not in self.left(), f"release of job {job}")
        return state

    def left(self) -> list[str]:
        """Return what is left of jobs on this node: folders, and what the agent keeps."""
        folders = [path.name for path in (self.run.path / "jobs").iterdir()]
        return folders + adopted_jobs(self.run)
