"""The I/O node's process: native threads serve the data, this one serves the control messages.

What an I/O node promises its clients is in docs/internals/wire.md. It ends by draining: on a
control message, on SIGTERM and on SIGINT.
"""

import asyncio
import ctypes
import math
import os
import secrets
import signal
import socket
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from penstock.errors import InputError, unknown
from penstock.live.ionode import _ionode
from penstock.live.ionode.registration import Registration
from penstock.live.protocol import messages, shared_page
from penstock.live.protocol.process import end_with_parent, raise_descriptor_limit
from penstock.live.protocol.site_key import RemoteController
from penstock.live.protocol.users import name_of

Control = (
    messages.Settings
    | messages.SetWeights
    | messages.GetCounters
    | messages.GetObservation
    | messages.Drain
    | messages.Stop
)
LONGEST_MESSAGE = 1 << 20
PATIENCE = 10.0
"""Seconds for clients to fall idle when the process is told to end by a signal."""

_COHERENT = {0x0BD00BD0: "Lustre", 0x47504653: "GPFS"}
_NEVER = {
    0x65735546: "FUSE",
    0x6969: "NFS",
    0x517B: "SMB",
    0xFE534D42: "SMB",
    0xFF534D42: "CIFS",
    0x01021997: "9p",
    0x5346414F: "AFS",
}


def coherent(root: Path, *, declared: bool = False) -> str:
    """Return why clients on other hosts must not reach files below a root here; "" if they may.

    What an I/O node writes must be seen at once by every host that has the file system mounted.
    """
    return _why_not(root, _file_system(root), declared=declared)


def _why_not(root: Path, magic: int, *, declared: bool) -> str:
    if magic in _COHERENT:
        return ""
    if magic in _NEVER:
        return f"{_NEVER[magic]}, on which {str(root)!r} is, shows other hosts old data"
    if declared:
        return ""
    return (
        f"{str(root)!r} is on a file system not known to be the same on all hosts at all times; "
        "give --coherent if it is"
    )


def _file_system(root: Path) -> int:
    answer = (ctypes.c_long * 32)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.statfs(os.fsencode(root), ctypes.byref(answer)) != 0:
        raise InputError(f"root {str(root)!r}: {os.strerror(ctypes.get_errno())}")
    return int(answer[0]) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Clients on other hosts: who has the token may open files below the roots."""

    host: str
    port: int
    token: bytes
    roots: tuple[Path, ...]
    declared: bool = False  # coherent, whatever is known of the file systems

    def check(self) -> None:
        """Refuse roots on which hosts would see each other's old data."""
        if len(self.token) != shared_page.TOKEN_BYTES:
            raise InputError(f"a token has {shared_page.TOKEN_BYTES} bytes, not {len(self.token)}")
        if not self.roots:
            raise InputError("an I/O node for other hosts needs a managed root; give --root")
        for root in self.roots:
            if why := coherent(root, declared=self.declared):
                raise InputError(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class IONode:
    """What an I/O node is told when it begins."""

    socket: Path
    control: Path
    number: int = 0
    id: int = field(default_factory=lambda: secrets.randbits(63) | 1)
    settings: messages.Settings = field(default_factory=messages.Settings)
    remote: Remote | None = None
    controller: RemoteController | None = None  # of another host, to register with
    all_users: bool = False
    with_parent: bool = False
    connections: int = 4096  # of one job
    handles: int = 4096  # of one process

    def serve(self, announce: Callable[[messages.Node, int], None]) -> int:
        """Serve until told to end; return the exit status.

        `announce` is called when clients can connect, with the node and its TCP port, or 0.
        """
        if self.all_users and os.geteuid() != 0:
            raise InputError("--all-users needs root: requests run with their callers' identities")
        if self.all_users and self.remote is not None:
            raise InputError(
                "over TCP an I/O node serves its own user alone; leave --all-users out"
            )
        if self.remote is not None:
            self.remote.check()
        if self.with_parent:
            end_with_parent(signal.SIGTERM)
        raise_descriptor_limit()
        os.umask(0o077)
        for path in (self.socket, self.control):
            _make_room(path)
        try:
            return asyncio.run(_Process(self).run(announce))
        finally:
            for path in (self.socket, self.control):
                path.unlink(missing_ok=True)


class _Process:
    """The running I/O node."""

    def __init__(self, told: IONode) -> None:
        self._told = told
        try:
            self._node = _ionode.Node(
                told.number,
                told.id,
                all_users=told.all_users,
                connections=told.connections,
                handles=told.handles,
                settings=_given(told.settings),
            )
        except ValueError as error:
            raise InputError(str(error)) from error
        self._end = asyncio.Event()
        self._drained: asyncio.Task[bool] | None = None
        self._registration: Registration | None = None

    async def run(self, announce: Callable[[messages.Node, int], None]) -> int:
        loop = asyncio.get_running_loop()
        self._node.listen_unix(str(self._told.socket))
        port = self._listen_to_other_hosts()
        self._node.start()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._begin_drain, PATIENCE)
        server = await asyncio.start_unix_server(
            self._converse, self._told.control, limit=LONGEST_MESSAGE
        )
        self._told.control.chmod(stat.S_IRUSR | stat.S_IWUSR)
        announce(
            messages.Node(
                number=self._told.number,
                id=self._told.id,
                address=str(self._told.socket),
                pid=os.getpid(),
            ),
            port,
        )
        self._register(port)
        await self._end.wait()
        drained = await self._drained if self._drained is not None else True
        server.close()
        if not await asyncio.to_thread(self._node.stop):
            # A call that never returns (a hung file system) holds its thread for ever.
            for path in (self._told.socket, self._told.control):
                path.unlink(missing_ok=True)
            os._exit(1)
        return 0 if drained else 1

    def _listen_to_other_hosts(self) -> int:
        remote = self._told.remote
        if remote is None:
            return 0
        try:
            roots = [str(root) for root in remote.roots]
            return self._node.listen_tcp(remote.host, remote.port, remote.token, roots)
        except ValueError as error:
            raise InputError(f"--tcp: {error}") from error

    def _register(self, port: int) -> None:
        told, loop = self._told, asyncio.get_running_loop()
        if told.controller is None or told.remote is None:
            return

        def answer(message: messages.Message) -> messages.Message:
            return asyncio.run_coroutine_threadsafe(self._answer(message), loop).result()

        node = messages.Node(
            number=told.number,
            id=told.id,
            address=told.remote.host,
            transport="tcp",
            port=port,
            pid=os.getpid(),
            user=name_of(os.geteuid()),
        )
        self._registration = Registration(told.controller, node, answer)

    def _begin_drain(self, seconds: float) -> "asyncio.Task[bool]":
        if self._registration is not None:
            self._registration.end()
        if self._drained is None:
            self._drained = asyncio.create_task(asyncio.to_thread(self._node.drain, seconds))
            self._drained.add_done_callback(lambda _: self._end.set())
        return self._drained

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.CancelledError, ValueError):
            while line := await reader.readline():
                writer.write(msgspec.json.encode(await self._heard(line)) + b"\n")
                await writer.drain()
        writer.close()

    async def _heard(self, line: bytes) -> messages.Message:
        try:
            message = msgspec.json.decode(line, type=Control)
        except (ValueError, TypeError) as error:
            return messages.Failure(error=str(error))
        return await self._answer(message)

    async def _answer(self, message: messages.Message) -> messages.Message:
        try:
            return await self._obey(message)
        except (ValueError, TypeError) as error:
            return messages.Failure(error=str(error))

    async def _obey(self, message: messages.Message) -> messages.Message:
        match message:
            case messages.Settings():
                self._node.configure(_given(message))
            case messages.SetWeights(weights=weights):
                _check_weights(weights)
                self._node.weigh(weights)
            case messages.GetCounters():
                return msgspec.convert(
                    {"node": self._told.id, "number": self._told.number, **self._node.measure()},
                    messages.NodeCounters,
                )
            case messages.GetObservation():
                return messages.NodeObservation(
                    node=self._told.id,
                    observation=self._node.observe(),
                    settings=self._node.settings(),
                )
            case messages.Drain() | messages.Stop():
                seconds = message.seconds if isinstance(message, messages.Drain) else PATIENCE
                if not await asyncio.shield(self._begin_drain(seconds)):
                    return messages.Failure(
                        error=f"requests are still under way after {seconds:g} s"
                    )
        return messages.Done()


def _given(settings: messages.Settings) -> dict[str, object]:
    """Return what the settings say, and nothing else."""
    fields = msgspec.structs.asdict(settings)
    given = {name: value for name, value in fields.items() if value is not None}
    scheduler = given.get("scheduler")
    if scheduler is not None and scheduler not in (known := _ionode.scheduler_names()):
        raise unknown("scheduler", str(scheduler), known)
    return given


def _check_weights(weights: Mapping[str, float]) -> None:
    """Refuse a weight that a job's queue would refuse: the job may not be there yet."""
    for job, weight in weights.items():
        if not 0 < weight < math.inf:
            raise InputError(f"weight {weight:g} of job {job!r}; give a number above zero")


def _make_room(path: Path) -> None:
    """Remove the socket of a process that is gone."""
    if not path.exists():
        return
    if not path.is_socket():
        raise InputError(f"{str(path)!r} is there already and no socket; give another path")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
    raise InputError(f"another process serves {str(path)!r}; give another path")


def roots_of(paths: Sequence[str]) -> tuple[Path, ...]:
    """Return managed roots as the shared page has them: resolved."""
    return tuple(Path(path).resolve() for path in paths)
