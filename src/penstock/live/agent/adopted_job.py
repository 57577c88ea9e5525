"""A job of a node in the hands of its agent: its pages, its socket, its line to the controller."""

import os
import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from penstock.live.agent import page_server
from penstock.live.agent.job_agent import Member
from penstock.live.agent.page_server import Agent, pages_of
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.exit_spool import ExitSpool
from penstock.live.protocol.hook_messages import AdoptJob
from penstock.live.protocol.preload import readable_by_all
from penstock.live.protocol.site_key import RemoteController

CONTROLLER_WITHIN = 5.0
"""Seconds for the controller to take a job in. A hook does not wait so long: tasks that begin later
are part of the job all the same."""


class Tenant:
    """A job of this node: its pages, its socket, its line to the controller.

    InputError: the controller refuses it. OSError: it cannot be asked.
    """

    def __init__(
        self,
        adopt: AdoptJob,
        where: Path | RemoteController,
        folder: Path,
        last_words: ExitSpool | None = None,
    ) -> None:
        self.adopt = adopt
        self.nodes = {adopt.node}
        with ExitStack() as stack:
            controller = stack.enter_context(connect(where))
            begin = _begin(adopt)
            begun = controller.ask(begin, messages.JobAccepted)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            _make_folder(folder, adopt)
            pages = stack.enter_context(pages_of(begun))
            socket = stack.enter_context(Agent(pages, folder / "agent.sock"))
            _give(socket.path, adopt)
            self.environment = _environment(begun, socket.path, folder.parent.parent / "lib")
            _write(folder / "environment", self.environment, adopt)
            self._member = Member(
                controller, begin, begun, pages, partial(connect, where), last_words=last_words
            )
            self._stack = stack.pop_all()

    def end(self, status: int) -> None:
        """Let the job go: processes that still run pass through."""
        self._member.end(status)
        self._stack.close()


def connect(where: Path | RemoteController) -> ControlConnection:
    """Return a connection to the controller; OSError: it does not answer."""
    return ControlConnection(where, timeout=CONTROLLER_WITHIN)


def _begin(adopt: AdoptJob) -> messages.BeginJob:
    return messages.BeginJob(
        name=adopt.name or adopt.job,
        pid=os.getpid(),
        command=[adopt.executable] if adopt.executable else [],
        user=adopt.user,
        protocol=messages.PROTOCOL,
        executable=adopt.executable,
        nodes=adopt.nodes,
        processes=adopt.processes,
        team=adopt.job,
    )


def _environment(begun: messages.JobAccepted, socket: Path, copies: Path) -> dict[str, str]:
    """Return what tasks need; libraries below the client library go after the task's own."""

    def preloaded(*files: str | Path) -> str:
        return ":".join(str(readable_by_all(Path(file), copies)) for file in files)

    above = preloaded(*begun.above, page_server.library())
    below = {"LD_PRELOAD_BELOW": preloaded(*begun.preload)} if begun.preload else {}
    return begun.environment | {"LD_PRELOAD": above, "PENSTOCK_AGENT": str(socket)} | below


def _make_folder(folder: Path, adopt: AdoptJob) -> None:
    # What is in it is the job's, the folder is not: a job cannot put other things there.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    (folder / "adopted").write_bytes(msgspec.json.encode(adopt))


def _give(path: Path, adopt: AdoptJob) -> None:
    path.chmod(0o600)
    if adopt.uid != os.geteuid():
        os.chown(path, adopt.uid, adopt.gid)


def _write(path: Path, environment: dict[str, str], adopt: AdoptJob) -> None:
    lines = [f"{name}={value}" for name, value in environment.items() if "\n" not in value]
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text("\n".join(lines) + "\n")
    _give(unfinished, adopt)
    unfinished.rename(path)
