"""Lines that connections send, read piece by piece: a flood waits at its source.

What is kept of lines without an end is bounded by user.
"""

import asyncio
from collections.abc import Callable

from penstock.live.protocol import client

PIECE = 1 << 14
"""Bytes that are read of a connection at a time; twice as many are read ahead."""
UNFINISHED = 8 * client.MAX_LINE_BYTES
"""Bytes that are kept of the lines of one user that have no end yet."""
_PIECE = bytearray(PIECE)
"""Where all connections are read to: its content is passed on before the next one is read."""


class LineReader(asyncio.StreamReader):
    """Reads lines; `kept` is told how many bytes are kept of one without an end, and when none."""

    def __init__(self) -> None:
        super().__init__(limit=PIECE)
        self.kept: Callable[[int], object] = lambda _: None

    async def readline(self) -> bytes:
        """Return the next line; nothing at the end. ConnectionError: it is too long."""
        line = bytearray()
        try:
            while True:
                try:
                    return bytes(line + await self.readuntil())
                except asyncio.IncompleteReadError:
                    return b""  # the connection broke
                except asyncio.LimitOverrunError as piece:
                    line += await self.readexactly(piece.consumed)
                if len(line) > client.MAX_LINE_BYTES:
                    raise ConnectionError("the line is too long")
                self.kept(len(line))
        finally:
            if line:
                self.kept(0)


class LineProtocol(asyncio.StreamReaderProtocol, asyncio.BufferedProtocol):
    """Reads one piece at a time."""

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002
        """Return where to read to."""
        return _PIECE

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what was read."""
        self.data_received(bytes(_PIECE[:nbytes]))


class UnfinishedLines:
    """How much is kept of them; of a user who has too much, the longest ends its connection."""

    def __init__(self, *, most: int = UNFINISHED) -> None:
        self._most = most
        self._sizes: dict[str, dict[Callable[[], object], int]] = {}

    def keep(self, user: str, close: Callable[[], object], size: int) -> None:
        """Count the bytes of a connection's line; `close` closes it if it has to go."""
        sizes = self._sizes.setdefault(user, {})
        sizes[close] = size
        if sum(sizes.values()) > self._most:
            longest = max(sizes, key=sizes.__getitem__)
            sizes[longest] = 0
            longest()
        if not sizes[close]:
            del sizes[close]
        if not sizes:
            del self._sizes[user]
