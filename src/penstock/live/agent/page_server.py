"""Hands the shared pages of a job to its processes. Runs in the agent.

A new process of the job connects to the agent's socket and receives the two pages as descriptors;
it keeps no connection. Without an agent, the client library passes all calls through.
"""

import os
import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from penstock.live.protocol import messages, preload, shared_page

_HELLO = struct.Struct("<8sII")
HELLO_TIMEOUT = 1.0
"""Seconds that a process may take to send its request."""
EXTRA_CALL_WAIT = 1.0
"""Seconds that a call waits longer than its phase, so that the agent ends and counts the wait."""


def library() -> Path:
    """Return the path of the client library."""
    return preload.library("libpenstock_client.so")


def create_pages(accepted: messages.JobAccepted) -> shared_page.SharedPages:
    """Create the pages of a job that the controller accepted."""
    return shared_page.SharedPages(
        [Path(root) for root in accepted.roots],
        file_systems=accepted.file_systems,
        job=accepted.job,
        token=bytes.fromhex(accepted.token) or bytes(shared_page.TOKEN_BYTES),
        longest_wait=accepted.longest_wait + EXTRA_CALL_WAIT,
        patience=accepted.patience,
    )


class PageServer:
    """Serves one job's pages on a Unix socket; a context manager."""

    def __init__(self, pages: shared_page.SharedPages, path: Path) -> None:
        self.pages = pages
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        os.fchmod(self._listener.fileno(), 0o600)  # before bind: the path never has more
        self._listener.bind(str(path))
        self._listener.listen(128)
        self._thread = threading.Thread(target=self._serve, name="penstock-pages", daemon=True)

    def __enter__(self) -> "PageServer":
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
        """Return the environment of the job's processes; it keeps other preloaded libraries.

        Libraries `above` see a call before the client library does; those `below` see the calls
        that it passes to the C library.
        """
        # A job inside a job has our libraries already; the linker accepts colons and spaces.
        others = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
        return {
            "LD_PRELOAD": ":".join(dict.fromkeys([*above, str(library()), *others, *below])),
            "ASAN_OPTIONS": preload.with_asan(os.environ.get("ASAN_OPTIONS", "")),
            "PENSTOCK_AGENT": str(self.path),
        }

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(HELLO_TIMEOUT)
                if answer := self.answer(connection.recv(_HELLO.size, socket.MSG_WAITALL)):
                    pages = [self.pages.control_fd, self.pages.counters_fd]
                    self.pages.attached += 1  # first: the process may end at once
                    socket.send_fds(connection, [answer], pages)

    def answer(self, hello: bytes) -> bytes | None:
        """Return the answer to a process that asks for the pages; None: it gets neither."""
        magic = (shared_page.CONTROL_MAGIC, self.pages.version)
        if len(hello) != _HELLO.size or _HELLO.unpack(hello)[:2] != magic:
            return None
        return _HELLO.pack(*magic, 0)
