"""Seals on what hosts send each other after they have proven the site key.

A line is sealed by an HMAC-SHA256 over its number in its direction and its text, with a key that
only this direction of this connection has. Who can change packets can end a connection, as by
cutting a cable, and do nothing else to it. docs/decisions/031-sealed-messages.md says why so.
"""

import hmac
from dataclasses import dataclass

_SEAL = 64
"""Bytes of a seal: an HMAC in hexadecimal."""


class TamperedError(ConnectionError):
    """A line is not the next one that the other end sent."""

    def __init__(self) -> None:
        super().__init__("a message was changed, lost or repeated on its way")


class Seal:
    """One direction of a connection, at one of its ends."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._lines = 0

    def seal(self, line: bytes) -> bytes:
        """Return a line with its seal; each line can be sealed once."""
        return self._next(line) + line

    def open(self, sealed: bytes) -> bytes:
        """Return a line without its seal; TamperedError: it is not the next one."""
        line = sealed[_SEAL:]
        if not hmac.compare_digest(self._next(line), sealed[:_SEAL]):
            raise TamperedError
        return line

    def _next(self, line: bytes) -> bytes:
        number = self._lines.to_bytes(8, "big")
        self._lines += 1
        return hmac.digest(self._key, number + line, "sha256").hex().encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seals:
    """Both directions of a connection, at one of its ends."""

    sent: Seal
    received: Seal
