"""Workers that Slurm starts, through dask-jobqueue: jobs of ours, none of which is left behind.

The scheduler runs in this process, on the network that the configuration names, and takes only who
has a key that is made for this run: anybody on a cluster could otherwise have code run in the
user's name. All jobs have one name, found nowhere else, by which they are cancelled at the end.
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

from penstock.campaign.executors.dask_executor import Away
from penstock.campaign.executors.executor import ExecutorError
from penstock.campaign.executors.on_dask import connected, quiet
from penstock.config.campaign import CampaignSection
from penstock.errors import InputError, unknown
from penstock.files import reason

COMMAND = 30.0
"""Seconds that one of Slurm's commands has, and its jobs to end."""
SEEN_IDLE, SEEN_BUSY = 3.0, 30.0
"""Seconds between two questions to Slurm, while there is no worker and while there are some."""
AGAIN = 3
"""How often jobs are submitted again that ended before any work was done."""
TOLD = 300
"""Letters of a worker's log that an error shows."""
NEVER = "100000 h"
ALIVE = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "STOPPED"}


def on_slurm(section: CampaignSection, tell: Callable[[str], None]) -> Away:
    """Return the place that a configuration describes."""
    for command in ("sbatch", "squeue", "scancel"):
        if shutil.which(command) is None:
            raise InputError(f"slurm: there is no {command} here; start penstock on a login node")
    known = [name for _, name in socket.if_nameindex()]
    if section.interface is not None and section.interface not in known:
        raise unknown("campaign.interface", section.interface, known)
    directory = Path(section.directory).expanduser().absolute()
    if any(character.isspace() for character in str(directory)):
        raise InputError(f"campaign.directory {str(directory)!r} has a blank; choose another")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"campaign.directory {directory}: {reason(error)}") from error

    _jobqueue()  # Here: it can only be imported by the main thread.

    @contextmanager
    def connect() -> Iterator[Jobs]:
        name = f"penstock-{secrets.token_hex(4)}"
        folder = directory / name
        submissions = Submissions()
        with (
            _private(folder),
            _cancelling(name, submissions, tell),
            _cluster(section, name, folder, submissions) as cluster,
            connected(cluster, "Dask's scheduler in this process") as client,
        ):
            jobs = Jobs(
                client=client,
                cluster=cluster,
                name=name,
                folder=folder,
                tell=tell,
                submissions=submissions,
                wanted=section.jobs,
            )
            jobs.submit()
            yield jobs

    return Away("Slurm", connect, wait=section.wait_seconds(), tell=tell)


@dataclass(slots=True, kw_only=True)
class Submissions:
    """Calls of sbatch: how many there were, those that surely gave no job, what was said."""

    begun: int = 0
    fruitless: int = 0
    refusals: list[str] = field(default_factory=list)

    def refused(self, error: Exception) -> None:
        """Note that one failed."""
        said = str(error).partition("stderr:")[2].strip()
        text = " ".join((said or str(error)).split())
        self.refusals.append(text)
        # One that Slurm was too slow to confirm may be in the queue all the same.
        self.fruitless += "timed out" not in text.lower()

    @property
    def none(self) -> bool:
        """Whether there is no job, whatever Slurm says later."""
        return self.begun == self.fruitless


@dataclass(slots=True, kw_only=True)
class Jobs:
    """The jobs of this run."""

    client: Any
    cluster: Any
    name: str
    folder: Path
    tell: Callable[[str], None]
    submissions: Submissions
    wanted: int
    fruitless: int = 0
    done: int = 0
    asked: float = 0.0
    states: Mapping[str, str] = field(default_factory=dict)

    def submit(self) -> None:
        """Have as many jobs as wanted, those that wait or run included."""
        self.asked = time.monotonic()
        self.cluster.scale(jobs=self.wanted)
        while not self._submitted():
            if self.submissions.refusals:
                raise ExecutorError(f"Slurm took no job: {self.submissions.refusals[0]}")
            if time.monotonic() > self.asked + COMMAND:
                raise ExecutorError(f"Slurm took no job: sbatch has not ended for {COMMAND:g} s")
            time.sleep(0.05)

    def _submitted(self) -> bool:
        jobs = list(self.cluster.workers.values())
        return len(jobs) == self.wanted and all(job.job_id for job in jobs)

    def look(self, workers: int, done: int) -> str:
        """Return what the jobs wait for; submit those again that ended."""
        if time.monotonic() - self.asked > (SEEN_BUSY if workers else SEEN_IDLE):
            self.asked = time.monotonic()
            found = _states(self.name)
            if found is not None:
                self.states = found
                if len(found) < self.wanted:
                    self._replace(done)
        waiting = sum(state != "RUNNING" for state in self.states.values())
        return f"{waiting} of {self.wanted} jobs wait in the queue" if waiting else ""

    def _replace(self, done: int) -> None:
        """Submit again what ended: at its time limit, with its node, by somebody's scancel."""
        self.fruitless = 0 if done > self.done else self.fruitless + 1
        self.done = done
        ended = self.wanted - len(self.states)
        if self.fruitless > AGAIN:
            raise ExecutorError(
                f"Slurm's jobs end before any work is done, {self.fruitless} times now{self._log()}"
            )
        self.tell(f"{ended} of {self.wanted} Slurm jobs ended and are submitted again{self._log()}")
        self.cluster.sync(self._drop_ended)
        self.submit()

    async def _drop_ended(self) -> None:
        """Make Dask forget the jobs that ended, so that it submits others in their stead."""
        for name, job in list(self.cluster.workers.items()):
            if job.job_id not in self.states:
                del self.cluster.workers[name]

    def _log(self) -> str:
        """Return the end of the latest log, which says why a worker ended."""
        logs = sorted(self.folder.glob("*.err"), key=lambda file: file.stat().st_mtime)
        text = " ".join(logs[-1].read_text(errors="replace").split()) if logs else ""
        return f" ({logs[-1]} ends with: {text[-TOLD:]})" if text else ""


def _jobqueue() -> tuple[Any, Any]:
    """Return the job and the cluster of dask-jobqueue, whose import takes Ctrl-C for itself."""
    before = signal.getsignal(signal.SIGINT)
    from dask_jobqueue.slurm import SLURMCluster, SLURMJob  # noqa: PLC0415

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)
    return SLURMJob, SLURMCluster


@contextmanager
def _cluster(
    section: CampaignSection, name: str, folder: Path, submissions: Submissions
) -> Iterator[Any]:
    """Give dask-jobqueue's cluster, with a scheduler and no jobs yet."""
    import dask  # noqa: PLC0415
    from distributed.core import Status  # noqa: PLC0415

    base, made = _jobqueue()
    quiet()

    class Job(base):  # type: ignore[misc, valid-type]
        """A job whose refusal is told to us: Dask keeps it to itself."""

        async def _submit_job(self, script_filename: str) -> Any:
            submissions.begun += 1
            try:
                return await super()._submit_job(script_filename)
            except Exception as error:
                submissions.refused(error)
                self.status = Status.failed  # Else Dask cannot close its cluster.
                raise

    # We look after the jobs that end; Dask would cancel those that took their place.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": NEVER}):
        try:
            cluster = made(
                job_cls=Job,
                job_name=name,
                cores=section.cores,
                processes=section.cores,
                memory=f"{section.memory_bytes():.0f}B",
                walltime=_limit(section.walltime_seconds()),
                queue=section.partition,
                account=section.account,
                job_extra_directives=list(section.sbatch),
                job_script_prologue=list(section.setup),
                python=section.python or sys.executable,
                interface=section.interface,
                log_directory=str(folder),
                security=_keys(folder),
                # It is neither encrypted nor asked for.
                scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                silence_logs=False,
            )
        except (RuntimeError, ValueError) as error:
            raise ExecutorError(f"no scheduler can be started here: {error}") from error
        try:
            yield cluster
        finally:
            # Whatever it leaves is cancelled by name.
            with suppress(Exception):
                cluster.close(timeout=COMMAND)


def _keys(folder: Path) -> Any:
    """Return new keys in files of a folder, with which scheduler and workers know each other."""
    from distributed.security import Security  # noqa: PLC0415

    made: Any = Security
    texts = made.temporary().get_tls_config_for_role("worker")
    files = {part: folder / f"{part}.pem" for part in ("ca_file", "cert", "key")}
    for part, file in files.items():
        file.touch(mode=0o600)
        file.write_text(texts[part])
    roles = ("scheduler", "worker", "client")
    ours = {f"tls_{role}_{part}": str(files[part]) for role in roles for part in ("cert", "key")}
    return made(tls_ca_file=str(files["ca_file"]), require_encryption=True, **ours)


@contextmanager
def _private(folder: Path) -> Iterator[None]:
    """Make a folder for the keys and logs of a run; logs stay when something went wrong."""
    folder.mkdir(mode=0o700)
    try:
        yield
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        for key in folder.glob("*.pem"):
            key.unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()  # Unless there are logs.


@contextmanager
def _cancelling(name: str, submissions: Submissions, tell: Callable[[str], None]) -> Iterator[None]:
    """Cancel all jobs of a name at the end, and see that they are gone."""
    try:
        yield
    finally:
        until = time.monotonic() + COMMAND
        while not submissions.none:
            _slurm("scancel", "--quiet", f"--name={name}", f"--user={getpass.getuser()}")
            left = _states(name)
            if left is not None and not left:
                break
            if time.monotonic() > until:
                what = (
                    "Slurm does not say whether jobs of this run are left"
                    if left is None
                    else "Slurm still has jobs of this run"
                )
                tell(f"{what}; see to them: scancel --name={name}")
                break
            time.sleep(0.2)


def _states(name: str) -> dict[str, str] | None:
    """Return the states of the jobs of a name that have not ended; None if Slurm does not tell."""
    told = _slurm("squeue", "-h", f"--user={getpass.getuser()}", f"--name={name}", "-o", "%i %T")
    if told is None:
        return None
    states = dict(line.split(maxsplit=1) for line in told.splitlines())
    return {job: state for job, state in states.items() if state in ALIVE}


def _slurm(*words: str) -> str | None:
    try:
        # In a session of its own: the terminal's Ctrl-C is not for it.
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=COMMAND,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout


def _limit(seconds: float) -> str:
    """Return a time limit as Slurm writes it."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
