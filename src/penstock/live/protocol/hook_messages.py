"""Messages between the hooks of a batch system and the agent of a node, and the agent's directory.

The batch system starts hooks with every job, and waits for them: import nothing large here.
"""

import logging
import os
import shutil
import stat
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.errors import InputError
from penstock.files import reason
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import MAX_SOCKET_PATH
from penstock.live.protocol.users import LARGEST_UID

UserNumber = Annotated[int, Meta(ge=0, le=LARGEST_UID)]
JobId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,31}\Z")]

log = logging.getLogger("penstock.agent")


class AdoptJob(messages.Message, frozen=True, kw_only=True, tag="Adopt"):
    """A job begins on this node. Answer: JobEnvironment, also for a job adopted before."""

    job: JobId  # the batch system's number
    uid: UserNumber
    gid: UserNumber
    user: str
    node: str = ""  # the batch system's name of this node; one host may be several nodes
    name: str = ""
    executable: messages.Application = ""
    nodes: messages.Positive = 1
    processes: messages.Positive | None = None
    partition: messages.Partition = ""
    io_nodes: int | None = None  # as in BeginJob
    hints: messages.Hints = messages.Hints()
    refused: tuple[str, ...] = ()  # why parts of the job's comment are left out: for the log


class JobEnvironment(messages.Message, frozen=True, kw_only=True, tag="Adopted"):
    """Variables for the job's tasks; also in the file `environment` of its directory."""

    environment: dict[str, str]


class ReleaseJob(messages.Message, frozen=True, kw_only=True, tag="Release"):
    """A job has ended on this node. Answer: Done, also for a job that is not adopted."""

    job: JobId
    node: str = ""
    status: messages.ExitStatus = 0


class ListJobs(messages.Message, frozen=True, kw_only=True, tag="List"):
    """Ask which jobs the agent has adopted. Answer: JobList."""


class JobList(messages.Message, frozen=True, kw_only=True, tag="Listed"):
    """The numbers of the adopted jobs."""

    jobs: list[str]


class GetUserKey(messages.Message, frozen=True, kw_only=True):
    """Ask the agent of root for the key of the user who connects. Answer: UserKey."""


class UserKey(messages.Message, frozen=True, kw_only=True):
    """The key with which a user of this host proves itself to the controller of another one."""

    user: str
    secret: str  # in hexadecimal


class AgentDirectory:
    """Where the agent of a node keeps its sockets, and the files that its jobs' tasks read."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.control = self.path / "agent.sock"
        self.users = self.path / "users.sock"  # for everybody: gives a user its key
        self.lock = self.path / "agent.lock"
        self.exit_spool = self.path / "last-words"  # for the controller of another host
        longest = len(os.fsencode(self.job("x" * 32) / "agent.sock"))
        if longest > MAX_SOCKET_PATH:
            raise InputError(
                f"--run {path} is {longest - MAX_SOCKET_PATH} bytes too long for the sockets in it"
            )

    def job(self, job: str) -> Path:
        """Return the directory of a job."""
        return self.path / "jobs" / job

    def create(self) -> None:
        """Create it: everybody may search it, only its owner may change it."""
        for path in (self.path, self.path / "jobs"):
            path.mkdir(mode=0o755, exist_ok=True)
            status = path.lstat()  # a link may be a stranger's
            if (
                not stat.S_ISDIR(status.st_mode)
                or status.st_uid != os.geteuid()
                or status.st_mode & 0o022
            ):
                raise InputError(f"{path} must be this user's, and not writable by others")
            path.chmod(0o755)

    def adopted_jobs(self) -> list[AdoptJob]:
        """Return the jobs that a killed agent had adopted; remove what cannot be read."""
        jobs = []
        for folder in (self.path / "jobs").iterdir():
            try:
                jobs.append(messages.decode((folder / "adopted").read_bytes(), AdoptJob))
            except (OSError, msgspec.DecodeError) as error:
                log.warning("removing %s: %s", folder, reason(error))
                shutil.rmtree(folder, ignore_errors=True)
        return jobs
