"""The agent of a job on its node: hands the shared pages to the job's processes.

A process of the job that starts connects to the agent's socket, says who it is, and gets the two
pages as descriptors; no process keeps a connection. Without an agent, processes pass through.
"""

import os
import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from penstock.live.agent.job_agent import CALLS_WAIT_LONGER
from penstock.live.protocol import messages, preload, shared_page

_HELLO = struct.Struct("<8sII")
PATIENCE = 1.0
"""Seconds that a process may take to say hello."""


def library() -> Path:
    """Return the client library."""
    return preload.library("libpenstock_client.so")


def pages_of(begun: messages.JobAccepted) -> shared_page.SharedPages:
    """Return the pages of a job that the controller took in."""
    return shared_page.SharedPages(
        [Path(root) for root in begun.roots],
        job=begun.job,
        token=bytes.fromhex(begun.token) or bytes(shared_page.TOKEN_BYTES),
        longest_wait=begun.longest_wait + CALLS_WAIT_LONGER,
        patience=begun.patience,
    )


class Agent:
    """Serves one job's pages on a Unix socket; a context manager."""

    def __init__(self, pages: shared_page.SharedPages, path: Path) -> None:
        self.pages = pages
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(128)
        self._thread = threading.Thread(target=self._serve, name="penstock-agent", daemon=True)

    def __enter__(self) -> "Agent":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def environment(
        self, *, above: Sequence[str] = (), below: Sequence[str] = ()
    ) -> dict[str, str]:
        """Return what a process needs to be part of the job; other preloaded libraries stay.

        Libraries `above` see a program's calls before the client library does, those `below` what
        it leaves to the C library.
        """
        # A job inside a job has its libraries already; the linker takes colons and spaces alike.
        others = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
        return {
            "LD_PRELOAD": ":".join(dict.fromkeys([*above, str(library()), *others, *below])),
            "PENSTOCK_AGENT": str(self.path),
        }

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(PATIENCE)
                self._welcome(connection)

    def _welcome(self, connection: socket.socket) -> None:
        hello = connection.recv(_HELLO.size, socket.MSG_WAITALL)
        if len(hello) != _HELLO.size or _HELLO.unpack(hello)[:2] != (
            shared_page.CONTROL_MAGIC,
            shared_page.VERSION,
        ):
            return
        answer = _HELLO.pack(shared_page.CONTROL_MAGIC, shared_page.VERSION, 0)
        socket.send_fds(connection, [answer], [self.pages.control_fd, self.pages.counters_fd])
