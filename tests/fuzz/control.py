"""Hostile control messages: a controller and a node's agent in this process, and odd clients.

`PYTHONPATH=tests python -m fuzz.control --cases 100000 --seed 1` prints what it found. A case is
one connection, which sends a few messages, in any order. What must hold: each connection ends, all
that is answered is JSON, no exception goes unhandled, and another client is served afterwards.
"""

import asyncio
import gc
import os
import pwd
import resource
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from fuzz.command import Problems, run_fuzzer
from fuzz.odd import Odd

from penstock.identities import FIRST_FILE_SYSTEM
from penstock.learn.imported import Imported, ImportedApplication
from penstock.live.agent.node_agent import NodeAgent
from penstock.live.agent.page_server import PageServer
from penstock.live.controller.controller import Controller
from penstock.live.controller.lines import LineReader
from penstock.live.controller.listeners import RemoteListener
from penstock.live.controller.peer import Peer
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages, shared_page, site_key
from penstock.live.protocol.client import encode_line
from penstock.live.protocol.hook_messages import (
    AdoptJob,
    AgentDirectory,
    GetUserKey,
    ListJobs,
    ReleaseJob,
)
from penstock.live.protocol.seal import Seal
from penstock.live.protocol.shared_page import SharedPages
from penstock.live.protocol.site_key import RemoteController, SiteKey
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of

CASE_SECONDS = 120.0
"""A connection that has not ended by then hangs."""
AT_A_TIME = 16
GROWTH_BYTES = 1 << 29
"""What this process may grow by, however many cases it has seen."""
NOBODY = pwd.getpwnam("nobody")
OWN = name_of(os.getuid())
ADDRESS = "192.0.2.1"
PEERS = (
    Peer(uid=os.geteuid(), pid=os.getpid()),
    Peer(uid=NOBODY.pw_uid, pid=1),
    Peer(address=ADDRESS),
    Peer(address=ADDRESS, user="nobody"),
)
"""The deployment's user, another one, a host with the site key, and a user of that host."""


def begin(user: str) -> messages.BeginJob:
    return messages.BeginJob(
        name="job",
        pid=os.getpid(),
        command=["./solve", "-x"],
        user=user,
        io_nodes=1,
        protocol=messages.PROTOCOL,
        executable="solve",
        nodes=2,
        processes=4,
        partition="batch",
        resumes="job.1",
        counters={"read_bytes": 5, "waited": 7, "maps": 0},
        usage=USAGE,
        team="5",
        hints=messages.Hints(volume=1e9, period=60.0, phases=3, pattern="shared", request=1e6),
    )


USAGE = messages.Usage(
    io_nodes={"0": 1, "1": 3}, file_systems={"0": 4}, directories=["/elsewhere", "/tmp"]
)
COUNTERS = {"read_bytes": 1 << 30, "write_bytes": 2, "waits": 1, "waited": 5, "lapses": 1}
BEGINNINGS = tuple(
    msgspec.structs.replace(begin(user), **change)
    for user in (OWN, "nobody", "ada")
    for change in (
        {"io_nodes": None, "resumes": None, "team": None},
        {"io_nodes": None, "resumes": None},
        {"io_nodes": 1, "resumes": "job.1"},
    )
)
NODE = messages.Node(number=0, id=1, address=ADDRESS, transport="tcp", port=9, pid=5, user="")
APPLICATION = ImportedApplication(
    user="nobody",
    application="solve",
    nodes=2,
    imported=Imported(curve={0: 1e9, 1: 2e9}, volume=1e9, compute=5.0, w_iter=2.0, iterations=3),
)
MESSAGES: tuple[messages.Message, ...] = (
    messages.PhaseBegan(phase=1, bytes=1 << 30, transferring=0.5, file_systems=[FIRST_FILE_SYSTEM]),
    messages.PhaseBegan(phase=2),
    messages.PhaseEnded(phase=1, bytes=1 << 30, seconds=2.0, waited=1.0, idle=0.5),
    messages.PhaseEnded(phase=2, bytes=1 << 30, seconds=2.0, waited=0.0, small=True),
    messages.Idle(phase=1, file_system=FIRST_FILE_SYSTEM, lends=True),
    messages.JobCounters(counters=COUNTERS, usage=USAGE),
    messages.JobExit(counters=COUNTERS, status=0, usage=USAGE),
    *(
        messages.UnreportedExit(
            job=job,
            begin=BEGINNINGS[k],
            began=1e9,
            ended=1e9 + 5,
            counters=COUNTERS,
            status=3,
            usage=USAGE,
        )
        for job in ("job.1", "job.2")
        for k in (0, 3)
    ),
    messages.SetMode(mode="enforce", user="nobody"),
    messages.SetMode(mode="advise"),
    messages.GetStatus(),
    messages.GetApplications(first=0, user="nobody"),
    messages.GetApplications(first=20),
    messages.ImportKnowledge(applications=[APPLICATION, APPLICATION]),
    messages.ForgetApplications(user="nobody", application="solve", nodes=2),
    messages.RegisterNode(node=NODE),
    # Of other directions, and answers to the controller's questions to an I/O node.
    messages.Challenge(nonce="0" * 64),
    messages.Turn(phase=1),
    messages.Done(),
    messages.Failure(error="no"),
    messages.NodeObservation(
        node=1, observation={"bytes": 5}, settings={"depth": 1}, jobs={"a": 1}
    ),
)
NOT_THE_OWN_USERS = (messages.Remap(job="job.1", nodes=[0], stripe=1 << 20), messages.Stop())
"""One would end the controller, the other waits for a job to answer."""
CLIENTS = BEGINNINGS + MESSAGES
HOOKS = (
    AdoptJob(
        job="7",
        uid=NOBODY.pw_uid,
        gid=NOBODY.pw_gid,
        user="nobody",
        node="n1",
        name="job",
        executable="solve",
        nodes=2,
        processes=4,
        partition="batch",
        io_nodes=1,
        hints=messages.Hints(volume=1e9),
        refused=("period=x",),
    ),
    ReleaseJob(job="7", node="n1", status=1),
    ListJobs(),
    GetUserKey(),
)


class Wire(asyncio.Transport):
    """The sending half of a connection whose other end reads everything at once."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__()
        self._reader = reader
        self.sent = bytearray()
        self._closed = False

    def write(self, data: Any) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    def abort(self) -> None:
        self._closed = True
        self._reader.feed_eof()

    def get_write_buffer_size(self) -> int:
        return 0


class Fuzzed:
    """A controller and an agent in this loop."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.odd = Odd(self.random)
        self.problems = Problems()
        self.state = StateDirectory(folder / "state")
        self.state.create()
        (folder / "data").mkdir()
        SiteKey.create(folder / "key")
        self.key = SiteKey.read(folder / "key")
        self.deployment = Deployment(
            state=str(self.state.folder),
            roots=[str(folder / "data")],
            io_nodes=0,
            remote_io_nodes=2,
            listen="127.0.0.1:0",
            key_file=str(folder / "key"),
        )
        self.controller = Controller(self.deployment)
        self.pages = SharedPages([folder / "data"])
        self.page_server = PageServer(self.pages, folder / "pages")
        self.agent = AgentDirectory(folder / "agent")
        self.agent.create()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        hosts, controller = RemoteListener(self.deployment), self.controller
        ready = asyncio.Event()
        server = await controller.start()
        with self.problems, self.page_server, self.pages:
            async with server, hosts.serving(controller.accept, controller.refusals):
                key = self.state.folder.parent / "key"
                self.listen = RemoteController.parse(self.state.listen.read_text(), key)
                self.hooks = NodeAgent(self.agent, self.listen, request_timeout=CASE_SECONDS)
                tasks = [
                    asyncio.create_task(controller.serve(server)),
                    asyncio.create_task(self.hooks.serve(ready.set)),
                ]
                await ready.wait()
                try:
                    yield
                finally:
                    tasks[1].cancel()
                    await asyncio.gather(tasks[1], return_exceptions=True)
                    await controller.stop()
                    await tasks[0]
                    gc.collect()  # tasks whose exceptions nobody saw say so
                    await asyncio.sleep(0)

    async def run(self, cases: int) -> None:
        """Try some cases; AssertionError: what must hold does not."""
        kinds: Sequence[Callable[[], Any]] = (self.host, self.hook, self.greeting)
        async with self.serving():
            await self.status("enforce")
            before = _resident()
            for first in range(0, cases, AT_A_TIME):
                async with asyncio.timeout(CASE_SECONDS):
                    await asyncio.gather(
                        *(
                            self.random.choice(kinds)()
                            if self.random.random() < 0.1
                            else self.session(self.random.choice(PEERS))
                            for _ in range(min(AT_A_TIME, cases - first))
                        )
                    )
                self.problems.check()
                if first % (64 * AT_A_TIME) == 0:
                    await self.status("enforce")
            await self.status("observe")
            grown = _resident() - before
            assert grown < GROWTH_BYTES, f"{grown:,} bytes are kept"
        self.problems.check()

    async def status(self, mode: str) -> messages.Status:
        """Be served as another client is; no job of a connection that ended still runs."""
        own = PEERS[0]
        texts = [encode_line(messages.SetMode(mode=mode)), encode_line(messages.GetStatus())]
        done, text = await self.converse(own, texts)
        assert msgspec.json.decode(done, type=messages.Done | messages.Failure) == messages.Done()
        status: messages.Status = msgspec.json.decode(text, type=messages.Status)
        async with asyncio.timeout(CASE_SECONDS):
            # The agent keeps those that a hook began, and a host's end may not be noticed yet.
            while len(self.controller.jobs.running) > len(self.hooks.jobs):
                await asyncio.sleep(0.01)
        return status

    def conversation(self, own: bool = False) -> list[bytes]:
        """Return some lines of a client."""
        lines = []
        if self.random.random() < 0.7:
            lines.append(self.odd.line(self.random.choice(BEGINNINGS)))
        several = MESSAGES if own else MESSAGES + NOT_THE_OWN_USERS
        lines += (
            self.odd.line(self.random.choice(several)) for _ in range(self.random.randrange(6))
        )
        return lines

    async def session(self, peer: Peer) -> None:
        """Be a client of the controller."""
        stream = b"".join(self.conversation(own=peer == PEERS[0]))
        if self.random.random() < 0.05:
            stream = self.odd.broken(stream)
        for line in await self.converse(peer, self.odd.segments(stream)):
            msgspec.json.decode(line)

    async def converse(self, peer: Peer, segments: Sequence[bytes]) -> list[bytes]:
        """Send this over a connection of its own; return the answers."""
        reader = LineReader()
        wire = Wire(reader)
        protocol = asyncio.StreamReaderProtocol(reader)
        protocol.connection_made(wire)
        writer = asyncio.StreamWriter(wire, protocol, reader, asyncio.get_running_loop())
        served = asyncio.create_task(self.controller.accept(reader, writer, peer))
        for segment in segments:
            reader.feed_data(segment)
            await asyncio.sleep(0)
        reader.feed_eof()
        try:
            await served
        except Exception:
            self.problems.note(segments)
        return bytes(wire.sent).splitlines()

    async def host(self) -> None:
        """Be another host: with odd proofs, or with a good one, and odd lines and seals."""
        address = self.listen.address
        reader, writer = await asyncio.open_connection(address.host, address.port)
        with suppress(OSError):
            challenge = msgspec.json.decode(await reader.readline(), type=messages.Challenge)
            user = self.random.choice(("", "nobody", "ada", "\0", "é"))
            key, nonce = self.key.of_user(user) if user else self.key, site_key.nonce()
            proof = key.proof("client", challenge.nonce, nonce)
            proven = messages.Proof(nonce=nonce, proof=proof, user=user)
            if self.random.random() < 0.5:
                writer.write(self.odd.line(proven))
                writer.write(b"".join(self.conversation()))
            else:
                writer.write(encode_line(proven))
                await reader.readline()
                seal = key.seals("client", challenge.nonce, nonce).sent
                for line in self.conversation():
                    writer.write(self._sealed(seal, line))
            writer.write_eof()
            while await reader.read(1 << 16):
                pass
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    def _sealed(self, seal: Seal, line: bytes) -> bytes:
        match self.random.randrange(12):
            case 0:
                return line
            case 1:
                return self.odd.broken(seal.seal(line))
            case 2:
                return seal.seal(line) * 2
        return seal.seal(line)

    async def hook(self) -> None:
        """Be a batch system's hook, or a user who wants its key."""
        path = self.random.choice((self.agent.control, self.agent.control, self.agent.users))
        reader, writer = await asyncio.open_unix_connection(str(path))
        with suppress(OSError):
            for segment in self.odd.segments(self.odd.line(self.random.choice(HOOKS))):
                writer.write(segment)
                await writer.drain()
            writer.write_eof()
            if answer := await reader.read():
                msgspec.json.decode(answer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def greeting(self) -> None:
        """Be a process of a job that asks for its pages."""
        hello = shared_page.CONTROL_MAGIC + self.pages.version.to_bytes(4, "little") + bytes(4)
        hello = self.random.choice((hello, self.random.randbytes(16), self.odd.broken(hello)))

        def greet() -> None:
            with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
                connection.settimeout(CASE_SECONDS)
                connection.connect(str(self.page_server.path))
                connection.sendall(hello)
                connection.shutdown(socket.SHUT_WR)
                _, descriptors, _, _ = socket.recv_fds(connection, 99, 4)
                for descriptor in descriptors:
                    os.close(descriptor)

        await asyncio.to_thread(greet)


def _resident() -> int:
    """Return the memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def fuzz(cases: int, seed: int) -> None:
    """Try some cases; AssertionError: what must hold does not."""
    with tempfile.TemporaryDirectory(prefix="fz", dir="/dev/shm") as folder:
        Path(folder).chmod(0o755)

        async def run() -> None:
            await Fuzzed(Path(folder), seed).run(cases)

        asyncio.run(run())


if __name__ == "__main__":
    run_fuzzer("control messages", fuzz, cases=20_000)
