"""A job that the agent of a node has adopted: its pages, its socket and its connection.

Runs in the agent of a node.
"""

import os
import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from penstock.live.agent import page_server
from penstock.live.agent.job_agent import JobAgent
from penstock.live.agent.page_server import PageServer, create_pages
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.exit_spool import ExitSpool
from penstock.live.protocol.hook_messages import AdoptJob
from penstock.live.protocol.preload import readable_by_all
from penstock.live.protocol.site_key import RemoteController

CONTROLLER_TIMEOUT = 5.0
"""Seconds for the controller to accept a job. A hook waits for less; the tasks that start after the
job is accepted are still managed."""


class AdoptedJob:
    """A job on this node, from its adoption to its release.

    Raises InputError if the controller refuses the job, OSError if it does not answer.
    """

    def __init__(
        self,
        adopt: AdoptJob,
        address: Path | RemoteController,
        folder: Path,
        exit_spool: ExitSpool | None = None,
    ) -> None:
        self.adopt = adopt
        self.nodes = {adopt.node}
        with ExitStack() as stack:
            controller = stack.enter_context(connect(address))
            begin = _begin(adopt)
            accepted = controller.ask(begin, messages.JobAccepted)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            _create_folder(folder, adopt)
            pages = stack.enter_context(create_pages(accepted))
            server = stack.enter_context(PageServer(pages, folder / "agent.sock"))
            _give_to_user(server.path, adopt)
            self.environment = _environment(accepted, server.path, folder.parent.parent / "lib")
            _write(folder / "environment", self.environment, adopt)
            self._agent = JobAgent(
                controller, begin, accepted, pages, partial(connect, address), exit_spool=exit_spool
            )
            self._stack = stack.pop_all()

    def end(self, status: int) -> None:
        """Release the job: the calls of processes that still run pass through."""
        self._agent.end(status)
        self._stack.close()


def connect(address: Path | RemoteController) -> ControlConnection:
    """Connect to the controller, or raise OSError."""
    return ControlConnection(address, timeout=CONTROLLER_TIMEOUT)


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


def _environment(accepted: messages.JobAccepted, socket: Path, copies: Path) -> dict[str, str]:
    """Return the environment of tasks; LD_PRELOAD_BELOW comes after a task's own LD_PRELOAD."""

    def preload(*files: str | Path) -> str:
        return ":".join(str(readable_by_all(Path(file), copies)) for file in files)

    above = preload(*accepted.above, page_server.library())
    below = {"LD_PRELOAD_BELOW": preload(*accepted.preload)} if accepted.preload else {}
    return accepted.environment | {"LD_PRELOAD": above, "PENSTOCK_AGENT": str(socket)} | below


def _create_folder(folder: Path, adopt: AdoptJob) -> None:
    # The files belong to the job's user, the folder does not: the user cannot add files.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    (folder / "adopted").write_bytes(msgspec.json.encode(adopt))


def _give_to_user(path: Path, adopt: AdoptJob) -> None:
    path.chmod(0o600)
    if adopt.uid != os.geteuid():
        os.chown(path, adopt.uid, adopt.gid)


def _write(path: Path, environment: dict[str, str], adopt: AdoptJob) -> None:
    lines = [f"{name}={value}" for name, value in environment.items() if "\n" not in value]
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text("\n".join(lines) + "\n")
    _give_to_user(unfinished, adopt)
    unfinished.rename(path)
