"""Who is at the other end of a connection to the controller, and what they may say."""

import logging
import os
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

from penstock.errors import InputError
from penstock.live.protocol.users import name_of, uid_of

LINES, WITHIN = 20, 60.0
"""RefusalLog that are logged in so many seconds."""
_CREDENTIALS = struct.Struct("3i")
log = logging.getLogger("penstock.controller")


class RefusedError(InputError):
    """What somebody had no right to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A user of this host, as the kernel says, or another host that has proven the site key."""

    uid: int | None = None  # None: of another host
    pid: int = 0  # of this host
    address: str = ""

    @classmethod
    def of(cls, connection: Any) -> "Peer":
        """Return who is at the other end of a Unix socket."""
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(told)
        return cls(uid=uid, pid=pid)

    @property
    def is_local(self) -> bool:
        """Whether it is on this host."""
        return self.uid is not None

    def check_user(self, user: str, what: str = "begin a job") -> None:
        """Refuse one who names another user; root speaks for others, as a host does for its own."""
        if self.uid and uid_of(user) != self.uid:
            raise RefusedError(f"{self} cannot {what} of user {user!r}")

    def check_rule(self, what: str) -> None:
        """Refuse one who is neither the deployment's user nor root, on this host."""
        if self.uid is None:
            raise RefusedError(f"{self} cannot {what}; do so on the controller's host")
        if self.uid not in (0, os.geteuid()):
            raise RefusedError(f"{self} cannot {what}; the deployment's user can")

    def check_node(self) -> None:
        """Refuse an I/O node that another user of this host says it is."""
        if self.is_local:
            self.check_rule("be an I/O node")

    def __str__(self) -> str:
        return f"host {self.address}" if self.uid is None else f"user {name_of(self.uid)}"


class RefusalLog:
    """Logs who was refused and why, so many lines a minute: a hostile peer does not fill a disk."""

    def __init__(self) -> None:
        self.total = 0
        self._since = -WITHIN
        self._told = 0

    def note(self, why: str) -> None:
        """Take note of a refusal."""
        self.total += 1
        now = time.monotonic()
        if now - self._since >= WITHIN:
            if self._told > LINES:
                log.warning("refused %d more before", self._told - LINES)
            self._since, self._told = now, 0
        self._told += 1
        if self._told <= LINES:
            log.warning("refused: %s", why)
