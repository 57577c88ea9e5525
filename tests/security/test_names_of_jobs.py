"""The name that a controller gives a job is a name, and no path for who reports the job's end."""

import os
import socket
import tempfile
import threading
from pathlib import Path

import pytest

from penstock.live.agent.job_agent import JobAgent, begin_job
from penstock.live.agent.page_server import create_pages
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection, encode_line
from penstock.live.protocol.exit_spool import ExitSpool
from penstock.live.protocol.users import name_of

pytestmark = pytest.mark.security


def test_a_controller_does_not_choose_where_an_exit_is_written() -> None:
    """That of another user, whom root's agent, or `penstock run --state`, asks for a job."""
    with tempfile.TemporaryDirectory(prefix="job", dir="/dev/shm") as path:
        folder = Path(path)
        (folder / "root").mkdir()
        (folder / "victim").mkdir()
        (folder / "state").mkdir()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / "socket"))
        listener.listen()

        def controller() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                accepted = messages.JobAccepted(
                    job="./../victim/x", roots=[str(folder / "root")], nodes=[]
                )
                connection.sendall(encode_line(accepted))
                connection.recv(1 << 16)  # and is gone: the exit is not confirmed

        thread = threading.Thread(target=controller)
        thread.start()
        begin = messages.BeginJob(
            name="job", pid=os.getpid(), command=["x"], user=name_of(os.getuid())
        )
        try:
            with ControlConnection(folder / "socket") as connection:
                try:
                    accepted = begin_job(connection, begin, os.getuid())
                except OSError:
                    return  # refused: it is no answer
                with create_pages(accepted) as pages:
                    agent = JobAgent(
                        connection,
                        begin,
                        accepted,
                        pages,
                        exit_spool=ExitSpool(folder / "state" / "last-words"),
                    )
                    agent.end(0)
        finally:
            thread.join()
            listener.close()
        assert not list((folder / "victim").iterdir())
