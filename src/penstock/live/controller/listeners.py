"""The controller's listeners: for its own host, and for hosts that prove the site key.

Connections are accepted one at a time (an asyncio server accepts all that are pending), so that
one too many is refused before the next is accepted, and descriptors do not run out.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from penstock.files import reason
from penstock.live.controller.lines import LineProtocol, LineReader
from penstock.live.controller.peer import Peer, RefusalLog
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import client, messages, site_key
from penstock.live.protocol.address import Address
from penstock.live.protocol.seal import Seal, Seals, TamperedError
from penstock.live.protocol.site_key import SiteKey
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.visitors import Visit, Visitors
from penstock.printable import printable

BACKLOG = 4096
PROOF_SECONDS = 2.0
"""Seconds for the proof."""
MOST_BYTES = 4096
"""Bytes that may come before the proof."""
UNPROVEN, UNPROVEN_PER_HOST = 512, 64
"""Connections that may be unproven at a time, in total and of one address: the oldest gives way."""
CLOSED_PER_ROUND = 64
"""Connections that are closed at once in a round of the loop."""
_READ_BYTES = 1 << 16
Accept = Callable[[LineReader, asyncio.StreamWriter], Awaitable[None]]
OnAdmitted = Callable[[LineReader, asyncio.StreamWriter, Peer], Awaitable[None]]
log = logging.getLogger("penstock.controller")


async def _accepted(
    listener: socket.socket, admits: Callable[[socket.socket], bool] = lambda _: True
) -> AsyncIterator[tuple[socket.socket, str]]:
    """Yield connections and their hosts, until cancelled; close those that are not admitted."""
    loop = asyncio.get_running_loop()
    closed = 0
    while True:
        try:
            connection, address = await loop.sock_accept(listener)
        except OSError as error:
            log.error("cannot accept a connection: %s", reason(error))
            await asyncio.sleep(0.1)
            continue
        if not admits(connection):
            connection.close()
            closed += 1
            if closed % CLOSED_PER_ROUND == 0:
                await asyncio.sleep(0)
            continue
        connection.setblocking(False)
        await asyncio.sleep(0)  # what was accepted is served before the next is
        yield connection, address[0] if address else ""


class DrainingProtocol(LineProtocol):
    """Reads everything that was sent, even if writing fails first: a job's exit may be in it."""

    def __init__(self, accept: Accept) -> None:
        self._reader = LineReader()
        self._descriptor = -1
        super().__init__(self._reader, lambda _, writer: accept(self._reader, writer))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the socket."""
        self._descriptor = transport.get_extra_info("socket").fileno()
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Read what is left in the socket, then end the stream."""
        with suppress(OSError):
            for _ in range(client.MAX_LINE_BYTES // _READ_BYTES):
                if not (left := os.read(self._descriptor, _READ_BYTES)):
                    break
                self._reader.feed_data(left)
        super().connection_lost(None)


class LocalListener:
    """The Unix socket of a controller; a context manager.

    Who may do what there is decided by the peer's identity; `all_users` may connect. What it does
    not admit is closed at once.
    """

    def __init__(
        self,
        path: Path,
        accept: Accept,
        *,
        all_users: bool = False,
        admits: Callable[[socket.socket], bool] = lambda _: True,
    ) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.unlink(missing_ok=True)  # left by a controller that was killed
        self._listener.bind(str(path))
        path.chmod(0o666 if all_users else 0o600)
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        self._task = asyncio.create_task(self._serve(accept, admits))

    async def __aenter__(self) -> "LocalListener":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await asyncio.gather(self._task, return_exceptions=True)

    def close(self) -> None:
        """Accept no more connections; existing ones continue."""
        self._task.cancel()

    async def _serve(self, accept: Accept, admits: Callable[[socket.socket], bool]) -> None:
        loop = asyncio.get_running_loop()
        with self._listener:
            async for connection, _ in _accepted(self._listener, admits):
                await loop.connect_accepted_socket(lambda: DrainingProtocol(accept), connection)


class RemoteListener:
    """The TCP port of a deployment, if it has one; InputError: it cannot be opened."""

    def __init__(self, deployment: Deployment) -> None:
        self._key = deployment.site_key()
        self._listener: socket.socket | None = None
        self._address_file = StateDirectory(Path(deployment.state)).listen
        self._address_file.unlink(missing_ok=True)
        self._lease = deployment.config.live.seconds()[0]
        if deployment.listen is not None:
            self._listener = Address.parse(deployment.listen, "--listen").listen()
            self._listener.setblocking(False)
            host, port = self._listener.getsockname()[:2]
            self._address_file.write_text(
                f"[{host}]:{port}\n" if ":" in host else f"{host}:{port}\n"
            )

    @asynccontextmanager
    async def serving(self, admitted: OnAdmitted, refusals: RefusalLog) -> AsyncIterator[None]:
        """Admit connections until the block ends."""
        if self._listener is None or self._key is None:
            yield
            return
        admission = Admission(self._key, admitted, refusals, lease=self._lease)
        task = asyncio.create_task(admission.accept(self._listener))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._listener.close()
            self._address_file.unlink(missing_ok=True)


class SealedReader(LineReader):
    """Reads sealed lines; `tampered` is called for one that is not the next, which is the end."""

    def __init__(self, seal: Seal, tampered: Callable[[TamperedError], object]) -> None:
        super().__init__()
        self._seal, self._tampered = seal, tampered

    async def readline(self) -> bytes:
        """Return the next line without its seal, or nothing at the end."""
        if not (sealed := await super().readline()):
            return b""
        try:
            return self._seal.open(sealed)
        except TamperedError as error:
            self._tampered(error)
            return b""


class SealedWriter(asyncio.StreamWriter):
    """Seals what it writes: one line at a time."""

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        protocol: asyncio.BaseProtocol,
        reader: asyncio.StreamReader,
        seal: Seal,
    ) -> None:
        super().__init__(transport, protocol, reader, asyncio.get_running_loop())
        self._seal = seal

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write a line."""
        super().write(self._seal.seal(bytes(data)))


class Admission:
    """Admits connections that prove the site key in time."""

    def __init__(
        self,
        key: SiteKey,
        admitted: OnAdmitted,
        refusals: RefusalLog,
        *,
        lease: float = 2.0,
        proof_seconds: float = PROOF_SECONDS,
        unproven_per_host: int = UNPROVEN_PER_HOST,
    ) -> None:
        self._proof_seconds = proof_seconds
        self._key, self._admitted, self._refusals = key, admitted, refusals
        self._lease = lease
        self._strangers = Visitors(
            per_peer=unproven_per_host,
            in_total=UNPROVEN,
            evicted=lambda host: refusals.note(f"host {host}: too many connections without proof"),
        )
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, listener: socket.socket) -> None:
        """Accept connections until cancelled; admitted ones continue."""
        async for connection, host in _accepted(listener):
            stranger = self._strangers.enter(host, partial(_hang_up, connection))
            task = asyncio.create_task(self._admit(connection, host, stranger))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _admit(self, connection: socket.socket, host: str, stranger: Visit) -> None:
        try:
            proven = await self._proven(connection)
        except BaseException:
            connection.close()
            raise
        finally:
            self._strangers.leave(host, stranger)
        if isinstance(proven, str):
            self._refusals.note(f"host {host}: {proven}")
            with suppress(OSError):
                refused = (
                    "the site key is not proven; are --key-file, and the version of penstock, the "
                    "same on all hosts?"
                )
                connection.send(client.encode_line(messages.Failure(error=refused)))
            connection.close()
            return
        client.set_loss_timeout(connection, self._lease)
        user, seals = proven
        reader = SealedReader(
            seals.received, lambda error: self._refusals.note(f"host {host}: {error}")
        )
        transport, protocol = await asyncio.get_running_loop().connect_accepted_socket(
            lambda: LineProtocol(reader), connection
        )
        writer = SealedWriter(transport, protocol, reader, seals.sent)
        await self._admitted(reader, writer, Peer(address=host, user=user))

    async def _proven(self, connection: socket.socket) -> tuple[str, Seals] | str:
        """Return the user and the seals of a connection, or why the other end is refused."""
        try:
            async with asyncio.timeout(self._proof_seconds):
                return await self._challenge(connection)
        except TimeoutError:
            return f"no proof came within {self._proof_seconds:g} s"
        except msgspec.DecodeError:
            return "it sent something else than a proof"
        except OSError as error:
            return reason(error)

    async def _challenge(self, connection: socket.socket) -> tuple[str, Seals] | str:
        loop, ours = asyncio.get_running_loop(), site_key.nonce()
        await loop.sock_sendall(connection, client.encode_line(messages.Challenge(nonce=ours)))
        answer = messages.decode(await _line(connection), messages.Proof)
        key = self._key.of_user(answer.user) if answer.user else self._key
        if not key.proves("client", ours, answer.nonce, answer.proof):
            of = f"the key of user {printable(answer.user)}" if answer.user else "the site key"
            return f"its proof of {of} is wrong"
        proof = key.proof("controller", ours, answer.nonce)
        await loop.sock_sendall(
            connection, client.encode_line(messages.Proof(nonce=ours, proof=proof))
        )
        return answer.user, key.seals("controller", ours, answer.nonce)


def _hang_up(connection: socket.socket) -> None:
    """End a connection; its task notices, and closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


async def _line(connection: socket.socket) -> bytes:
    """Return the first line; no more is read than may come before the proof."""
    loop, text = asyncio.get_running_loop(), b""
    while not text.endswith(b"\n"):
        if len(text) >= MOST_BYTES:
            raise ConnectionError("too many bytes came before its proof")
        more = await loop.sock_recv(connection, MOST_BYTES - len(text))
        if not more:
            raise ConnectionError("it left without a proof")
        text += more
    return text
