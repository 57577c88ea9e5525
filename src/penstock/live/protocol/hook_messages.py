"""How a batch system's hooks and a node's agent speak: messages, and where the agent is found.

Hooks are started with every job and must end soon: nothing large is imported here.
"""

import logging
import os
import shutil
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.errors import InputError
from penstock.files import reason
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import LONGEST_PATH

JobId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,31}\Z")]

log = logging.getLogger("penstock.agent")


class Adopt(messages.Message, frozen=True, kw_only=True):
    """A job begins on this node. Answer: Adopted, also where it is known already."""

    job: JobId  # the batch system's number
    uid: int
    gid: int
    user: str
    node: str = ""  # the batch system's name of this node; one host may be several
    name: str = ""
    executable: str = ""
    nodes: messages.Positive = 1
    processes: messages.Positive | None = None


class Adopted(messages.Message, frozen=True, kw_only=True):
    """What the environment of the job's tasks has; also in the file `environment` of its folder."""

    environment: dict[str, str]


class Release(messages.Message, frozen=True, kw_only=True):
    """A job has ended on this node. Answer: Done, also where it is not known."""

    job: JobId
    node: str = ""
    status: messages.ExitStatus = 0


class List(messages.Message, frozen=True, kw_only=True):
    """Ask which jobs the agent keeps. Answer: Listed."""


class Listed(messages.Message, frozen=True, kw_only=True):
    """The jobs' numbers."""

    jobs: list[str]


class Folder:
    """Where an agent keeps its sockets, and what its jobs' tasks read."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.control = self.path / "agent.sock"
        self.lock = self.path / "agent.lock"
        self.last_words = self.path / "last-words"  # for a controller of another host
        longest = len(os.fsencode(self.job("x" * 32) / "agent.sock"))
        if longest > LONGEST_PATH:
            raise InputError(
                f"--run {path} is {longest - LONGEST_PATH} bytes too long for the sockets in it"
            )

    def job(self, job: str) -> Path:
        """Return a job's folder."""
        return self.path / "jobs" / job

    def create(self) -> None:
        """Make it: everybody may pass, nobody else may change anything."""
        for path in (self.path, self.path / "jobs"):
            path.mkdir(mode=0o755, exist_ok=True)
            found = path.stat()
            if found.st_uid != os.geteuid() or found.st_mode & 0o022:
                raise InputError(f"{path} must be this user's, and not writable by others")
            path.chmod(0o755)

    def left(self) -> list[Adopt]:
        """Return the jobs of an agent that was killed; what cannot be read is removed."""
        found = []
        for folder in (self.path / "jobs").iterdir():
            try:
                found.append(msgspec.json.decode((folder / "adopted").read_bytes(), type=Adopt))
            except (OSError, msgspec.DecodeError) as error:
                log.warning("removing %s: %s", folder, reason(error))
                shutil.rmtree(folder, ignore_errors=True)
        return found
