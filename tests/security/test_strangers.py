"""Idle connections of one user, or of one address, leave room for all others, and for its own."""

import asyncio
import errno
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Hashable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from limits import HANG
from live.other_users import AS_ROOT, NOBODY, as_user

from penstock.live.agent.user_keys import key_of_host
from penstock.live.protocol import messages
from penstock.live.protocol.address import Address
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.hook_messages import AgentDirectory
from penstock.live.protocol.site_key import Key, RemoteController, SiteKey
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of
from penstock.live.protocol.visitors import Visitors

pytestmark = pytest.mark.security

IDLE = 300
DAEMON = 1
LIMITED = f'ulimit -n 256; exec {sys.executable} -m penstock.cli "$@"'
"""Of 256 descriptors 192 are for connections: fewer than idle ones come."""


class Site:
    """A deployment of all users that listens to other hosts, and a host's agent."""

    def __init__(self, folder: Path) -> None:
        self.state, self.agent = StateDirectory(folder / "state"), AgentDirectory(folder / "agent")
        self._key = folder / "key"
        folder.chmod(0o755)
        (folder / "root").mkdir()
        SiteKey.create(self._key)
        self.key = SiteKey.read(self._key)
        place = ("--state", str(self.state.folder), "--root", str(folder / "root"))
        listens = ("--listen", "127.0.0.1:0", "--key-file", str(self._key))
        self._penstock("up", *place, *listens, "--io-nodes", "0", "--all-users")
        host, _, port = self.state.listen.read_text().strip().rpartition(":")
        self.controller = Address(host=host, port=int(port))

    def _penstock(self, *words: str) -> None:
        command = ["sh", "-c", LIMITED, "sh", *words]
        subprocess.run(command, check=True, timeout=HANG, capture_output=True)

    def down(self) -> None:
        self._penstock("down", "--state", str(self.state.folder))

    def start_agent(self) -> "subprocess.Popen[str]":
        where = ("--controller", f"127.0.0.1:{self.controller.port}", "--key-file", str(self._key))
        words = ("agent", *where, "--run", str(self.agent.path), "--json")
        command = ["sh", "-c", LIMITED, "sh", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "{\n"
        return process

    def remote(self, key: Key) -> ControlConnection:
        return ControlConnection(RemoteController(address=self.controller, key=key))


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="idle", dir="/dev/shm") as path:
        made = Site(Path(path))
        yield made
        made.down()


def idle(stack: ExitStack, where: Path | tuple[str, int], count: int = IDLE) -> None:
    """Connect many times, and say nothing."""
    for _ in range(count):
        family = socket.AF_UNIX if isinstance(where, Path) else socket.AF_INET
        one = stack.enter_context(socket.socket(family))
        one.settimeout(HANG)
        address = str(where) if isinstance(where, Path) else where
        while one.connect_ex(address) == errno.EAGAIN:  # its queue is full
            time.sleep(0.01)


def runs_a_job(connection: ControlConnection, user: str) -> str:
    with connection:
        begin = messages.BeginJob(name="job", pid=os.getpid(), command=["job"], user=user)
        connection.ask(begin, messages.JobAccepted)
        connection.ask(messages.JobExit(counters={}, status=0), messages.Done)
    return "ran"


@AS_ROOT
@pytest.mark.parametrize("other", [DAEMON, NOBODY, 0])
def test_idle_connections_of_a_user_leave_room_at_the_controller(site: Site, other: int) -> None:
    def attack() -> str:
        """Hold them while another user, in a process of its own, begins a job."""
        with ExitStack() as stack:
            idle(stack, site.state.controller)
            os.write(ready[1], b"r")
            os.read(done[0], 1)
        return ""

    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        as_user(NOBODY, attack)
        os._exit(0)
    try:
        assert os.read(ready[0], 1) == b"r"

        def connect() -> str:
            return runs_a_job(ControlConnection(site.state.controller), name_of(other))

        assert (as_user(other, connect) if other else connect()) == "ran"
    finally:
        os.write(done[1], b"d")
        os.waitpid(child, 0)
        for end in (*ready, *done):
            os.close(end)


def test_connections_without_a_proof_leave_room_for_their_own_address(site: Site) -> None:
    """A user of a host would keep out its root, whose agent serves all others there."""
    with ExitStack() as stack:
        for _ in range(10):
            idle(stack, (site.controller.host, site.controller.port), 100)  # its queue has 128
            assert runs_a_job(site.remote(site.key), "ada") == "ran"


def test_idle_connections_of_a_user_of_another_host_leave_room(site: Site) -> None:
    with ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(site.remote(site.key.of_user("alice")))
        for user in ("bob", "alice"):
            assert runs_a_job(site.remote(site.key.of_user(user)), user) == "ran"
        assert runs_a_job(site.remote(site.key), "bob") == "ran"


@AS_ROOT
def test_idle_connections_of_a_user_leave_room_at_the_agent(site: Site) -> None:
    with site.start_agent() as agent, ExitStack() as stack:
        stack.callback(agent.terminate)
        idle(stack, site.agent.users)
        for user in (NOBODY, DAEMON):
            given = as_user(user, lambda: f"{key_of_host(site.agent).user}")
            assert given == name_of(user)


# Of whom, and for how long.


def test_the_oldest_of_whoever_has_most_gives_way() -> None:
    gone: list[str] = []
    evicted: list[Hashable] = []
    visitors = Visitors(per_peer=3, in_total=5, evicted=evicted.append)

    def enter(peer: str, name: str) -> None:
        visitors.enter(peer, lambda: gone.append(name))

    for name in ("a1", "a2", "a3", "a4"):
        enter("a", name)
    assert gone == ["a1"]
    enter("b", "b1")
    enter("b", "b2")
    enter("c", "c1")
    assert gone == ["a1", "a2"]
    assert evicted == ["a", "a"]
    with visitors.visiting("b", lambda: gone.append("b3")):
        pass
    assert "b3" not in gone


def test_a_silent_visitor_is_not_waited_for() -> None:
    async def silent() -> None:
        with pytest.raises(TimeoutError):
            await Visitors(silent_seconds=0.01).line(asyncio.StreamReader())
        reader = asyncio.StreamReader()
        reader.feed_data(b"a line\n")
        assert await Visitors(silent_seconds=HANG).line(reader) == b"a line\n"

    asyncio.run(silent())
