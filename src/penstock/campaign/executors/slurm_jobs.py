"""Workers that Slurm starts, through dask-jobqueue; no job is left behind.

The scheduler runs in this process, on the network that the configuration names. It accepts only
workers with a key that is generated for this run: otherwise anybody on the cluster could run code
in the user's name. All jobs have one unique name, by which they are cancelled at the end.
"""

import getpass
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.campaign.executors.dask_pool import Cluster, DaskPool, connected, silence_dask
from penstock.campaign.executors.pool import ExecutorError, Limits
from penstock.config.campaign import CampaignSection
from penstock.errors import InputError, unknown
from penstock.files import reason

LOG_END = 300
"""Characters of a worker's log that an error shows."""
NEVER = "100000 h"
ALIVE = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "STOPPED"}


def slurm_pool(section: CampaignSection, tell: Callable[[str], None], limits: Limits) -> DaskPool:
    """Return the workers that a configuration describes."""
    for command in ("sbatch", "squeue", "scancel"):
        if shutil.which(command) is None:
            raise InputError(f"slurm: there is no {command} here; start penstock on a login node")
    interfaces = [name for _, name in socket.if_nameindex()]
    if section.interface is not None and section.interface not in interfaces:
        raise unknown("campaign.interface", section.interface, interfaces)
    directory = Path(section.directory).expanduser().absolute()
    if any(character.isspace() for character in str(directory)):
        raise InputError(f"campaign.directory {str(directory)!r} has a blank; choose another")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"campaign.directory {directory}: {reason(error)}") from error

    new_cluster = _import_cluster()  # Only the main thread can.

    @contextmanager
    def connect() -> Iterator[SlurmJobs]:
        name = f"penstock-{secrets.token_hex(4)}"
        folder = directory / name
        with (
            _private(folder),
            _cluster(new_cluster, section, name, folder, limits) as cluster,
            connected(cluster, "Dask's scheduler in this process", limits) as client,
        ):
            jobs = SlurmJobs(
                client=client,
                cluster=cluster,
                name=name,
                folder=folder,
                tell=tell,
                count=section.jobs,
                limits=limits,
            )
            try:
                yield jobs
            finally:
                jobs.cancel()

    return DaskPool("Slurm", connect, wait=section.wait_seconds(), tell=tell, limits=limits)


@dataclass(slots=True, kw_only=True)
class SlurmJobs(Cluster):
    """The jobs of this run."""

    cluster: Any
    name: str
    folder: Path
    tell: Callable[[str], None]
    count: int
    limits: Limits
    refused: bool = False
    """Whether there is surely no job."""
    failures: int = 0
    done: int = 0
    polled: float = 0.0
    states: Mapping[str, str] = field(default_factory=dict)

    def submit(self) -> None:
        """Submit jobs until as many wait or run as configured."""
        from distributed.core import Status  # noqa: PLC0415

        self.polled, limit = time.monotonic(), self.limits.command
        try:
            self.cluster.sync(self._scale, callback_timeout=limit)
        except TimeoutError as error:
            raise ExecutorError(
                f"Slurm took no job: sbatch has not ended for {limit:g} s"
            ) from error
        except (RuntimeError, ValueError, OSError) as error:
            stderr = str(error).partition("stderr:")[2].strip()
            text = " ".join((stderr or str(error)).split())
            without_id = [job for job in self.cluster.workers.values() if not job.job_id]
            for job in without_id:
                job.status = Status.failed  # Else Dask cannot close its cluster.
            # A job that Slurm was too slow to confirm may still be in the queue.
            none = len(without_id) == len(self.cluster.workers)
            self.refused = none and "timed out" not in text.lower()
            raise ExecutorError(f"Slurm took no job: {text}") from error

    async def _scale(self) -> None:
        self.cluster.scale(jobs=self.count)
        await self.cluster  # Which raises what sbatch says.

    def look_after_workers(self, workers: int, done: int) -> str:
        """Return what the jobs wait for; submit them, and those again that ended."""
        limits = self.limits
        if not self.polled:
            self.submit()
        if time.monotonic() - self.polled > (limits.poll_busy if workers else limits.poll_idle):
            self.polled = time.monotonic()
            states = _states(self.name, limits)
            if states is not None:
                self.states = states
                if len(states) < self.count:
                    self._replace(done)
        waiting = sum(state != "RUNNING" for state in self.states.values())
        return f"{waiting} of {self.count} jobs wait in the queue" if waiting else ""

    def _replace(self, done: int) -> None:
        """Submit jobs again that ended: at the time limit, with their node, or by scancel."""
        self.failures = 0 if done > self.done else self.failures + 1
        self.done = done
        ended = self.count - len(self.states)
        if self.failures > self.limits.resubmissions:
            raise ExecutorError(
                f"Slurm's jobs end before any work is done, {self.failures} times now{self._log()}"
            )
        self.tell(f"{ended} of {self.count} Slurm jobs ended and are submitted again{self._log()}")
        self.cluster.sync(self._drop_ended)
        self.submit()

    async def _drop_ended(self) -> None:
        """Make Dask forget the jobs that ended, so that it submits others in their place."""
        for name, job in list(self.cluster.workers.items()):
            if job.job_id not in self.states:
                del self.cluster.workers[name]

    def _log(self) -> str:
        """Return the end of the latest log, which says why a worker ended."""
        logs = sorted(self.folder.glob("*.err"), key=lambda file: file.stat().st_mtime)
        text = " ".join(logs[-1].read_text(errors="replace").split()) if logs else ""
        return f" ({logs[-1]} ends with: {text[-LOG_END:]})" if text else ""

    def cancel(self) -> None:
        """Cancel all jobs by their name, and wait until they have ended."""
        until = time.monotonic() + self.limits.command
        while not self.refused:
            _slurm(self.limits, "scancel", "--quiet", f"--name={self.name}", _user())
            left = _states(self.name, self.limits)
            if left is not None and not left:
                break
            if time.monotonic() > until:
                what = (
                    "Slurm does not say whether jobs of this run are left"
                    if left is None
                    else "Slurm still has jobs of this run"
                )
                self.tell(f"{what}; see to them: scancel --name={self.name}")
                break
            time.sleep(0.2)


def _import_cluster() -> Any:
    """Return dask-jobqueue's cluster, whose import takes over Ctrl-C."""
    before = signal.getsignal(signal.SIGINT)
    from dask_jobqueue.slurm import SLURMCluster  # noqa: PLC0415

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)
    return SLURMCluster


@contextmanager
def _cluster(
    new_cluster: Any, section: CampaignSection, name: str, folder: Path, limits: Limits
) -> Iterator[Any]:
    """Start dask-jobqueue's cluster, with a scheduler and no jobs yet."""
    import dask  # noqa: PLC0415

    silence_dask()
    minutes, seconds = divmod(round(section.walltime_seconds()), 60)
    # SlurmJobs replaces the jobs that end; Dask would cancel the new ones.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": NEVER}):
        try:
            cluster = new_cluster(
                job_name=name,
                cores=section.cores,
                processes=section.cores,
                memory=f"{section.memory_bytes():.0f}B",
                walltime=f"{minutes}:{seconds:02}",
                queue=section.partition,
                account=section.account,
                job_extra_directives=list(section.sbatch),
                job_script_prologue=list(section.setup),
                python=section.python or sys.executable,
                interface=section.interface,
                log_directory=str(folder),
                security=_keys(folder),
                # The dashboard is neither encrypted nor needed.
                scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                silence_logs=False,
            )
        except (RuntimeError, ValueError) as error:
            raise ExecutorError(f"no scheduler can be started here: {error}") from error
        try:
            yield cluster
        finally:
            with suppress(Exception):
                cluster.close(timeout=limits.command)


def _keys(folder: Path) -> Any:
    """Return new TLS keys, in files of a folder, for the scheduler and its workers."""
    from distributed.security import Security  # noqa: PLC0415

    security: Any = Security
    texts = security.temporary().get_tls_config_for_role("worker")
    files = {part: folder / f"{part}.pem" for part in ("ca_file", "cert", "key")}
    for part, file in files.items():
        file.touch(mode=0o600)
        file.write_text(texts[part])
    roles = ("scheduler", "worker", "client")
    pairs = {f"tls_{role}_{part}": str(files[part]) for role in roles for part in ("cert", "key")}
    return security(tls_ca_file=str(files["ca_file"]), require_encryption=True, **pairs)


@contextmanager
def _private(folder: Path) -> Iterator[None]:
    """Create a folder for the keys and logs of a run; logs stay after a failure."""
    folder.mkdir(mode=0o700)
    try:
        yield
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        for key in folder.glob("*.pem"):
            key.unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()  # Unless there are logs.


def _user() -> str:
    return f"--user={getpass.getuser()}"


def _states(name: str, limits: Limits) -> dict[str, str] | None:
    """Return the states of jobs of a name that have not ended; None if Slurm does not answer."""
    output = _slurm(limits, "squeue", "-h", _user(), f"--name={name}", "-o", "%i %T")
    if output is None:
        return None
    states = dict(line.split(maxsplit=1) for line in output.splitlines())
    return {job: state for job, state in states.items() if state in ALIVE}


def _slurm(limits: Limits, *words: str) -> str | None:
    try:
        # In a session of its own, so that the terminal's Ctrl-C does not reach it.
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=limits.command,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout
