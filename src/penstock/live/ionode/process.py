"""The process of an I/O node: native threads serve data, this module serves control messages.

docs/internals/wire.md says what an I/O node guarantees its clients. It drains before it ends: on a
control message, on SIGTERM and on SIGINT.
"""

import asyncio
import ctypes
import errno
import ipaddress
import math
import os
import secrets
import signal
import socket
import stat
import sys
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
from penstock.live.protocol.users import SubordinateIds, name_of

Control = (
    messages.Settings
    | messages.SetWeights
    | messages.GetCounters
    | messages.GetObservation
    | messages.Drain
    | messages.Stop
)
MAX_MESSAGE_BYTES = 1 << 20
MOST_JOBS = 4096
"""Jobs that an answer names, each in at most 100 bytes: readers take no more than 1 MiB."""
DRAIN_TIMEOUT = 10.0
"""Seconds for clients to become idle after a signal or Stop."""

SUBORDINATE_IDS_INTERVAL = 30.0
"""Seconds between looks at /etc/subuid."""
_NOBODY = (65534, 65534)
_POOLS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""How large pools of threads are that libraries start when they are imported."""
"""The user and group that own nothing."""
_COHERENT = {0x0BD00BD0: "Lustre", 0x47504653: "GPFS"}
_INCOHERENT = {
    0x65735546: "FUSE",
    0x6969: "NFS",
    0x517B: "SMB",
    0xFE534D42: "SMB",
    0xFF534D42: "CIFS",
    0x01021997: "9p",
    0x5346414F: "AFS",
}


def file_system_magic(root: Path) -> int:
    """Return the magic number of a directory's file system."""
    answer = (ctypes.c_long * 32)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.statfs(os.fsencode(root), ctypes.byref(answer)) != 0:
        raise InputError(f"root {str(root)!r}: {os.strerror(ctypes.get_errno())}")
    return int(answer[0]) & 0xFFFFFFFF


def coherence_problem(
    root: Path, *, declared: bool = False, file_system: Callable[[Path], int] = file_system_magic
) -> str:
    """Return why clients on other hosts must not use files below a root, or an empty string.

    Every host that mounts the file system must see at once what an I/O node writes.
    """
    magic = file_system(root)
    if magic in _COHERENT:
        return ""
    if magic in _INCOHERENT:
        return f"{str(root)!r} is on {_INCOHERENT[magic]}, which shows other hosts old data"
    if declared:
        return ""
    return (
        f"{str(root)!r} is on a file system that is not known to be coherent between hosts; "
        "give --coherent if it is"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAccess:
    """Access for other hosts: clients with the token may open files below the roots."""

    host: str
    port: int
    token: bytes
    roots: tuple[Path, ...]
    declared: bool = False  # the administrator says that the file systems are coherent

    def check(self) -> None:
        """Raise InputError for a wrong token, or roots that are not coherent between hosts."""
        if len(self.token) != shared_page.TOKEN_BYTES:
            raise InputError(f"a token has {shared_page.TOKEN_BYTES} bytes, not {len(self.token)}")
        if not self.roots:
            raise InputError("an I/O node for other hosts needs a managed root; give --root")
        if _is_loopback(self.host):
            return  # clients of this host see what its kernel sees
        for root in self.roots:
            if problem := coherence_problem(root, declared=self.declared):
                raise InputError(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class IONode:
    """The options of an I/O node."""

    socket: Path
    control: Path
    number: int = 0
    id: int = field(default_factory=lambda: secrets.randbits(63) | 1)
    settings: messages.Settings = field(default_factory=messages.Settings)
    remote: RemoteAccess | None = None
    controller: RemoteController | None = None  # of another host, to register with
    all_users: bool = False
    with_parent: bool = False
    connections: int = 4096  # per job
    handles: int = 4096  # per process

    def serve(self, announce: Callable[[messages.Node, int], None]) -> int:
        """Serve until a signal or message ends it; return the exit status.

        Calls `announce` once clients can connect, with the node and its TCP port, or 0.
        """
        _without_threads()
        if self.remote is not None:
            self.remote.check()
        if self.with_parent:
            end_with_parent(signal.SIGTERM)
        raise_descriptor_limit()
        os.umask(0o077)
        for path in (self.socket, self.control):
            _remove_stale_socket(path)
        try:
            return asyncio.run(_Server(self).run(announce))
        finally:
            _unlink(self.socket, self.control)


def _without_threads() -> None:
    """Begin again if a library has started threads, which would keep the privileges of root.

    What a thread may do is its own: capabilities are given up by the thread that asks for it alone.
    Another program that serves as an I/O node, as a test does, has threads of its own.
    """
    if "ionode" not in sys.orig_argv:
        return
    if os.geteuid() != 0 or len(os.listdir("/proc/self/task")) == 1:  # noqa: PTH208
        return
    if all(os.environ.get(name) == "1" for name in _POOLS):
        raise InputError("a library of this Python has started threads, which keep root's rights")
    os.execve(sys.executable, sys.orig_argv, os.environ | dict.fromkeys(_POOLS, "1"))


class _Server:
    """The running I/O node."""

    def __init__(self, options: IONode) -> None:
        self._options = options
        try:
            self._node = _ionode.Node(
                options.number,
                options.id,
                all_users=options.all_users,
                connections=options.connections,
                handles=options.handles,
                settings=_changes(options.settings),
            )
        except ValueError as error:
            raise InputError(str(error)) from error
        self._ended = asyncio.Event()
        self._draining: asyncio.Task[bool] | None = None
        self._registration: Registration | None = None

    async def run(self, announce: Callable[[messages.Node, int], None]) -> int:
        loop = asyncio.get_running_loop()
        self._node.listen_unix(str(self._options.socket))
        port = self._listen_tcp()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._begin_drain, DRAIN_TIMEOUT)
        server = await asyncio.start_unix_server(
            self._serve_control, self._options.control, limit=MAX_MESSAGE_BYTES
        )
        self._options.control.chmod(stat.S_IRUSR | stat.S_IWUSR)
        self._give_up_privileges()
        following = asyncio.create_task(self._follow_subordinate_ids())
        self._node.start()
        announce(
            messages.Node(
                number=self._options.number,
                id=self._options.id,
                address=str(self._options.socket),
                pid=os.getpid(),
            ),
            port,
        )
        self._register(port)
        await self._ended.wait()
        drained = await self._draining if self._draining is not None else True
        following.cancel()
        server.close()
        if not await asyncio.to_thread(self._node.stop):
            # A call that never returns (a hung file system) blocks its thread forever.
            _unlink(self._options.socket, self._options.control)
            os._exit(1)
        return 0 if drained else 1

    def _give_up_privileges(self) -> None:
        """Become a user without rights, unless files of our own are to be opened for other hosts.

        Clients of this host make their calls themselves.
        """
        stays = os.geteuid() != 0 or self._options.remote is not None
        user, group = (0, 0) if stays else _NOBODY
        _ionode.give_up_privileges(user, group)
        if self._options.with_parent:
            end_with_parent(signal.SIGTERM)  # a change of user forgets it

    async def _follow_subordinate_ids(self) -> None:
        """Tell the data threads, which can read no such file, whose a process of a container is."""
        ids, known = SubordinateIds(), None
        while True:
            if (ranges := ids.ranges) != known:
                known = ranges
                self._node.own([(entry.first, entry.count, entry.owner) for entry in ranges])
            await asyncio.sleep(SUBORDINATE_IDS_INTERVAL)

    def _listen_tcp(self) -> int:
        remote = self._options.remote
        if remote is None:
            return 0
        try:
            roots = [str(root) for root in remote.roots]
            return self._node.listen_tcp(remote.host, remote.port, remote.token, roots)
        except ValueError as error:
            raise InputError(f"--tcp: {error}") from error

    def _register(self, port: int) -> None:
        options, loop = self._options, asyncio.get_running_loop()
        if options.controller is None or options.remote is None:
            return

        def answer(message: messages.Message) -> messages.Message:
            return asyncio.run_coroutine_threadsafe(self._answer(message), loop).result()

        node = messages.Node(
            number=options.number,
            id=options.id,
            address=options.remote.host,
            transport="tcp",
            port=port,
            pid=os.getpid(),
            user=name_of(os.geteuid()),
        )
        self._registration = Registration(options.controller, node, answer)

    def _begin_drain(self, seconds: float) -> "asyncio.Task[bool]":
        if self._registration is not None:
            self._registration.end()
        if self._draining is None:
            self._draining = asyncio.create_task(asyncio.to_thread(self._node.drain, seconds))
            self._draining.add_done_callback(lambda _: self._ended.set())
        return self._draining

    async def _serve_control(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError, asyncio.CancelledError, ValueError):
            while line := await reader.readline():
                writer.write(msgspec.json.encode(await self._decode_and_answer(line)) + b"\n")
                await writer.drain()
        writer.close()

    async def _decode_and_answer(self, line: bytes) -> messages.Message:
        try:
            message = messages.decode(line, Control)
        except (ValueError, TypeError) as error:
            return messages.Failure(error=str(error))
        return await self._answer(message)

    async def _answer(self, message: messages.Message) -> messages.Message:
        try:
            return await self._handle(message)
        except (ValueError, TypeError) as error:
            return messages.Failure(error=str(error))

    async def _handle(self, message: messages.Message) -> messages.Message:
        match message:
            case messages.Settings():
                self._node.configure(_changes(message))
            case messages.SetWeights(weights=weights):
                _check_weights(weights)
                self._node.weigh(weights)
            case messages.GetCounters():
                counters = self._node.measure()
                counters["groups"] = _most_active(counters["groups"])
                numbers = {"node": self._options.id, "number": self._options.number}
                return msgspec.convert(numbers | counters, messages.NodeCounters)
            case messages.GetObservation():
                return messages.NodeObservation(
                    node=self._options.id,
                    observation=self._node.observe(),
                    settings=self._node.settings(),
                    jobs=_most_active(self._node.measure()["groups"]),
                )
            case messages.Drain() | messages.Stop():
                seconds = message.seconds if isinstance(message, messages.Drain) else DRAIN_TIMEOUT
                if not await asyncio.shield(self._begin_drain(seconds)):
                    return messages.Failure(
                        error=f"requests are still under way after {seconds:g} s"
                    )
        return messages.Done()


def _most_active(moved: Mapping[str, int]) -> dict[str, int]:
    """Return the jobs that an answer names: those that moved most."""
    named = sorted(moved, key=moved.__getitem__, reverse=True)[:MOST_JOBS]
    return {job: moved[job] for job in named}


def _changes(settings: messages.Settings) -> dict[str, object]:
    """Return the settings that are not None; raise InputError for an unknown scheduler."""
    changes = settings.given()
    scheduler = changes.get("scheduler")
    if scheduler is not None and scheduler not in (names := _ionode.scheduler_names()):
        raise unknown("scheduler", str(scheduler), names)
    return changes


def _check_weights(weights: Mapping[str, float]) -> None:
    """Refuse invalid weights here: the job, whose queue would refuse them, may not be there yet."""
    for job, weight in weights.items():
        if not 0 < weight < math.inf:
            raise InputError(f"weight {weight:g} of job {job!r}; give a number above zero")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unlink(*paths: Path) -> None:
    """Remove sockets, where we still may; else whoever started us does."""
    for path in paths:
        with suppress(OSError):
            path.unlink()


def _remove_stale_socket(path: Path) -> None:
    """Remove the socket of a process that has ended."""
    if not path.exists():
        return
    if not path.is_socket():
        raise InputError(f"{str(path)!r} exists and is not a socket; give another path")
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
        with socket.socket(socket.AF_UNIX, kind) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
                return
            except OSError as error:
                if error.errno == errno.EPROTOTYPE:
                    continue  # the other one of our two sockets
                raise InputError(f"{str(path)!r}: {error.strerror}") from error
            break
    raise InputError(f"another process serves {str(path)!r}; give another path")


def resolve_roots(paths: Sequence[str]) -> tuple[Path, ...]:
    """Return managed roots as in the shared page: resolved."""
    return tuple(Path(path).resolve() for path in paths)
