"""Where a controller listens: to its own host, and to others, once they have proven the site key.

Connections are taken one at a time, and not, as an asyncio server does, as many as there are: who
is one too many is refused before the next is taken, and descriptors do not run out.
"""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from penstock.files import reason
from penstock.live.controller.peer import Peer, RefusalLog
from penstock.live.controller.session import Accept, DrainingProtocol
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import client, messages, site_key
from penstock.live.protocol.address import Address
from penstock.live.protocol.site_key import SiteKey
from penstock.live.protocol.state_directory import StateDirectory

BACKLOG = 4096
PROVES_WITHIN = 2.0
MOST_BYTES = 4096
"""What may come from one who has proven nothing."""
UNPROVEN, UNPROVEN_OF_ONE = 512, 64
"""Connections that may be in that state, and those of one address."""
Admitted = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Peer], Awaitable[None]]
log = logging.getLogger("penstock.controller")


async def _taken(listener: socket.socket) -> AsyncIterator[tuple[socket.socket, str]]:
    """Yield connections and the hosts that they come from, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            connection, address = await loop.sock_accept(listener)
        except OSError as error:
            log.error("no connection can be taken: %s", reason(error))
            await asyncio.sleep(0.1)
            continue
        connection.setblocking(False)
        yield connection, address[0] if address else ""


class LocalListener:
    """Where a controller's host connects to it; a context manager."""

    def __init__(self, path: Path, accept: Accept) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.unlink(missing_ok=True)  # of one that was killed
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        self._task = asyncio.create_task(self._serve(accept))

    async def __aenter__(self) -> "LocalListener":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await asyncio.gather(self._task, return_exceptions=True)

    def close(self) -> None:
        """Take no more connections; those that are there go on."""
        self._task.cancel()

    async def _serve(self, accept: Accept) -> None:
        loop = asyncio.get_running_loop()
        with self._listener:
            async for connection, _ in _taken(self._listener):
                await loop.connect_accepted_socket(lambda: DrainingProtocol(accept), connection)


class RemoteListener:
    """Where a deployment listens to other hosts, if it does; InputError: it cannot be there."""

    def __init__(self, deployment: Deployment) -> None:
        self._key = deployment.site_key()
        self._listener: socket.socket | None = None
        self._told = StateDirectory(Path(deployment.state)).listen
        self._told.unlink(missing_ok=True)
        self._lease = deployment.config.live.seconds()[0]
        if deployment.listen is not None:
            self._listener = Address.parse(deployment.listen, "--listen").listen()
            self._listener.setblocking(False)
            host, port = self._listener.getsockname()[:2]
            self._told.write_text(f"[{host}]:{port}\n" if ":" in host else f"{host}:{port}\n")

    @asynccontextmanager
    async def serving(self, admitted: Admitted, refusals: RefusalLog) -> AsyncIterator[None]:
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
            self._told.unlink(missing_ok=True)


class Admission:
    """Lets those in who prove the key in time, and in few words."""

    def __init__(
        self, key: SiteKey, admitted: Admitted, refusals: RefusalLog, *, lease: float = 2.0
    ) -> None:
        self._key, self._admitted, self._refusals = key, admitted, refusals
        self._lease = lease
        self._unproven: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, listener: socket.socket) -> None:
        """Take connections until cancelled; those that were let in go on."""
        async for connection, host in _taken(listener):
            if self._unproven.total() >= UNPROVEN or self._unproven[host] >= UNPROVEN_OF_ONE:
                connection.close()
                self._refusals.note(f"host {host}: too many connections without proof")
                continue
            self._unproven[host] += 1
            task = asyncio.create_task(self._admit(connection, host))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _admit(self, connection: socket.socket, host: str) -> None:
        try:
            why = await self._proven(connection)
        except BaseException:
            connection.close()
            raise
        finally:
            self._unproven[host] -= 1
            self._unproven += Counter()  # whoever has none left is forgotten
        if why:
            self._refusals.note(f"host {host}: {why}")
            with suppress(OSError):
                refused = "the site key is not proven; is --key-file the same on all hosts?"
                connection.send(client.encode_line(messages.Failure(error=refused)))
            connection.close()
            return
        client.set_loss_timeout(connection, self._lease)
        streams = await asyncio.open_connection(sock=connection, limit=client.MAX_LINE_BYTES)
        await self._admitted(*streams, Peer(address=host))

    async def _proven(self, connection: socket.socket) -> str:
        """Return why the other end is not let in; "": it is."""
        try:
            async with asyncio.timeout(PROVES_WITHIN):
                return await self._challenge(connection)
        except TimeoutError:
            return f"no proof came within {PROVES_WITHIN:g} s"
        except (msgspec.DecodeError, UnicodeDecodeError):
            return "what it sent is no proof"
        except OSError as error:
            return reason(error)

    async def _challenge(self, connection: socket.socket) -> str:
        loop, ours = asyncio.get_running_loop(), site_key.nonce()
        await loop.sock_sendall(connection, client.encode_line(messages.Challenge(nonce=ours)))
        told = msgspec.json.decode(await _line(connection), type=messages.Proof)
        if not self._key.proves("client", ours, told.nonce, told.proof):
            return "its proof of the site key is wrong"
        proof = self._key.proof("controller", ours, told.nonce)
        await loop.sock_sendall(
            connection, client.encode_line(messages.Proof(nonce=ours, proof=proof))
        )
        return ""


async def _line(connection: socket.socket) -> bytes:
    """Return what comes up to the end of a line: no more is read than one may send unproven."""
    loop, text = asyncio.get_running_loop(), b""
    while not text.endswith(b"\n"):
        if len(text) >= MOST_BYTES:
            raise ConnectionError("too many bytes came before its proof")
        more = await loop.sock_recv(connection, MOST_BYTES - len(text))
        if not more:
            raise ConnectionError("it left without proof")
        text += more
    return text
