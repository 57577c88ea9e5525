"""Who asks for the status without end delays nobody's turns."""

import json
import mmap
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from limits import HANG
from live.other_users import AS_ROOT, NOBODY
from security.open_site import open_site

from penstock.live.protocol import messages
from penstock.live.protocol.client import encode_line
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of

pytestmark = [pytest.mark.security, AS_ROOT]
JOBS, CONNECTIONS = 150, 30
BEATS = 6
ANSWERS = 60
"""That a user may get from one heartbeat to the next. With three heartbeats per lease of 2 s these
are 90 per second."""


@pytest.fixture
def site() -> Iterator[StateDirectory]:
    with open_site("--mode", "enforce") as state:
        yield state


def begin(site: StateDirectory, user: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(site.controller))
    job = messages.BeginJob(
        name="job", pid=os.getpid(), command=["x" * 1500], user=user, protocol=messages.PROTOCOL
    )
    connection.sendall(encode_line(job))
    return connection


@contextmanager
def flood(site: StateDirectory) -> Iterator[mmap.mmap]:
    """Ask as another user, and count the answers in shared memory, one count per thread."""
    counts = mmap.mmap(-1, 8 * CONNECTIONS)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        jobs = [begin(site, name_of(NOBODY)) for _ in range(JOBS)]
        for job in jobs:
            job.recv(4096)

        def ask(number: int) -> None:
            count = 0
            while True:
                with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(str(site.controller))
                    connection.sendall(encode_line(messages.GetStatus()) * 200)
                    while text := connection.recv(1 << 20):
                        count += text.count(b"\n")
                        struct.pack_into("<Q", counts, 8 * number, count)
                time.sleep(0.01)

        for number in range(CONNECTIONS):
            threading.Thread(target=ask, args=[number], daemon=True).start()
        time.sleep(10 * HANG)
        os._exit(0)
    try:
        yield counts
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_heartbeats_come_however_often_others_ask(site: StateDirectory) -> None:
    """They were 12 s apart: with a lease of 2 s, every gate of the site had opened by itself."""
    with flood(site) as counts, begin(site, "root") as job, job.makefile("rb") as lines:

        def answered() -> int:
            return sum(struct.unpack(f"<{CONNECTIONS}Q", counts[:]))

        assert json.loads(lines.readline())["type"] == "Begun"
        deadline = time.monotonic() + HANG
        while answered() < CONNECTIONS and time.monotonic() < deadline:
            time.sleep(0.01)
        job.settimeout(HANG)
        between = []
        for _ in range(BEATS):
            before = answered()
            while json.loads(lines.readline())["type"] != "Beat":
                pass
            between.append(answered() - before)
        assert max(between[1:]) <= ANSWERS, between
