"""A controller without sockets: connections whose lines are there at once, and its answers."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from penstock.live.controller.controller import Controller
from penstock.live.controller.lines import LineProtocol, LineReader
from penstock.live.controller.peer import Peer
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.live.protocol.client import encode_line
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of


class Wire(asyncio.Transport):
    """The controller's end of a connection: what it sends is kept, in the order of all."""

    def __init__(self, name: str, sent: list[tuple[str, bytes]]) -> None:
        super().__init__()
        self._name, self._sent = name, sent
        self._closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._sent += [(self._name, line) for line in bytes(data).splitlines()]

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    abort = close

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Answers:
    """A controller, connections to it whose lines are all there at once, and its answers."""

    def __init__(self, folder: Path, tick: float = 1e-6) -> None:
        """`tick`: seconds by which the controller's clock goes on whenever it is read."""
        root, state = folder / "data", StateDirectory(folder / "state")
        root.mkdir()
        state.create()
        ticks = count()
        self.ticks: Callable[[], int] = lambda: next(ticks)
        """How often the clock was read."""
        self.controller = Controller(
            Deployment(state=str(state.folder), roots=[str(root)], io_nodes=0),
            clock=lambda: 100.0 + next(ticks) * tick,
        )
        self.wires: list[Wire] = []
        self.readers: list[LineReader] = []
        self.sent: list[tuple[str, bytes]] = []

    def connect(
        self, peer: Peer, name: str, lines: bytes, *, stays: bool = False
    ) -> "asyncio.Task[None]":
        """Connect as a peer, and send these lines; `name` is that of the connection here."""
        reader = LineReader()
        wire, protocol = Wire(name, self.sent), LineProtocol(reader)
        self.wires.append(wire)
        self.readers.append(reader)
        protocol.connection_made(wire)
        writer = asyncio.StreamWriter(wire, protocol, reader, asyncio.get_running_loop())
        reader.feed_data(lines)
        if not stays:
            reader.feed_eof()
        return asyncio.create_task(self.controller.accept(reader, writer, peer))

    async def all_of(self, name: str, count: int) -> list[bytes]:
        """Return the answers to a connection once there are `count`."""
        while len(self.of(name)) < count:
            await asyncio.sleep(0)
        return self.of(name)

    def of(self, name: str) -> list[bytes]:
        """Return the answers to a connection."""
        return [line for of, line in self.sent if of == name]


@contextmanager
def answering(folder: Path, tick: float = 1e-6) -> Iterator[Answers]:
    """Yield a controller, and close it."""
    made = Answers(folder, tick)
    try:
        yield made
    finally:
        made.controller.archive.store.close()
        made.controller.record_writer.close()


def begin(peer: Peer, name: str = "job") -> bytes:
    """Return the line that begins a job of a user of this host."""
    job = messages.BeginJob(
        name=name, pid=1, command=["x"], user=name_of(peer.uid or 0), protocol=messages.PROTOCOL
    )
    return encode_line(job)


async def cancelled(tasks: "Sequence[asyncio.Task[None]]") -> None:
    """End connections."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
