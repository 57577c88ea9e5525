"""A job of a node in the hands of its agent: where its sockets are, its pages, its controller."""

import logging
import os
import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.errors import InputError
from penstock.files import reason
from penstock.live import agent, wire
from penstock.live.agent import Agent
from penstock.live.channel import Channel
from penstock.live.member import Member
from penstock.live.page import Pages
from penstock.live.state import LONGEST_PATH, State

CONTROLLER_WITHIN = 1.0
"""Seconds for the controller to take a job in: a hook waits."""
JobId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,31}\Z")]

log = logging.getLogger("penstock.agent")


class Adopt(wire.Message, frozen=True, kw_only=True):
    """A job begins on this node. Answer: Adopted, also where it is known already."""

    job: JobId  # the batch system's number
    uid: int
    gid: int
    user: str
    node: str = ""  # the batch system's name of this node; one host may be several
    name: str = ""
    executable: str = ""
    nodes: wire.Positive = 1
    processes: wire.Positive | None = None


class Folder:
    """Where an agent keeps its sockets, and what its jobs' tasks read."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.control = self.path / "agent.sock"
        self.lock = self.path / "agent.lock"
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


class Tenant:
    """A job of this node: its pages, its socket, its line to the controller.

    InputError: the controller refuses it. OSError: it cannot be asked.
    """

    def __init__(self, adopt: Adopt, state: State, folder: Path) -> None:
        self.adopt = adopt
        self.nodes = {adopt.node}
        with ExitStack() as stack:
            controller = stack.enter_context(_connect(state))
            begin = _begin(adopt)
            begun = controller.ask(begin, wire.Begun)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            _make_folder(folder, adopt)
            pages = stack.enter_context(_pages(begun))
            socket = stack.enter_context(Agent(pages, folder / "agent.sock"))
            _give(socket.path, adopt)
            self.environment = _environment(begun, socket.path)
            _write(folder / "environment", self.environment, adopt)
            self._member = Member(controller, begin, begun, pages, partial(_connect, state))
            self._stack = stack.pop_all()

    def end(self, status: int) -> None:
        """Let the job go: processes that still run pass through."""
        self._member.end(status)
        self._stack.close()


def _connect(state: State) -> Channel:
    return Channel(state.controller, patience=CONTROLLER_WITHIN)


def _begin(adopt: Adopt) -> wire.Begin:
    return wire.Begin(
        name=adopt.name or adopt.job,
        pid=os.getpid(),
        command=[adopt.executable] if adopt.executable else [],
        user=adopt.user,
        protocol=wire.PROTOCOL,
        executable=adopt.executable,
        nodes=adopt.nodes,
        processes=adopt.processes,
    )


def _pages(begun: wire.Begun) -> Pages:
    return Pages(
        [Path(root) for root in begun.roots],
        job=begun.job,
        longest_wait=begun.longest_wait,
        patience=begun.patience,
    )


def _environment(begun: wire.Begun, socket: Path) -> dict[str, str]:
    """Return what tasks need; libraries below the client library go after the task's own."""
    above = ":".join([*begun.above, str(agent.library())])
    below = {"LD_PRELOAD_BELOW": ":".join(begun.preload)} if begun.preload else {}
    return begun.environment | {"LD_PRELOAD": above, "PENSTOCK_AGENT": str(socket)} | below


def _make_folder(folder: Path, adopt: Adopt) -> None:
    # What is in it is the job's, the folder is not: a job cannot put other things there.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    (folder / "adopted").write_bytes(msgspec.json.encode(adopt))


def _give(path: Path, adopt: Adopt) -> None:
    path.chmod(0o600)
    if adopt.uid != os.geteuid():
        os.chown(path, adopt.uid, adopt.gid)


def _write(path: Path, environment: dict[str, str], adopt: Adopt) -> None:
    lines = [f"{name}={value}" for name, value in environment.items() if "\n" not in value]
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text("\n".join(lines) + "\n")
    _give(unfinished, adopt)
    unfinished.rename(path)
