"""The other end of a connection to the controller, and what it may request."""

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
"""Refusals that are logged, within this many seconds."""
_CREDENTIALS = struct.Struct("3i")
log = logging.getLogger("penstock.controller")


class RefusedError(InputError):
    """A request that the peer is not allowed to make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A user of this host (according to the kernel), or a host that has proven the site key."""

    uid: int | None = None  # None: on another host
    pid: int = 0  # on this host
    address: str = ""

    @classmethod
    def from_socket(cls, connection: Any) -> "Peer":
        """Return the other end of a Unix socket."""
        credentials = connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
        )
        pid, uid, _ = _CREDENTIALS.unpack(credentials)
        return cls(uid=uid, pid=pid)

    @property
    def is_local(self) -> bool:
        """Whether it is on this host."""
        return self.uid is not None

    def check_user(self, user: str, what: str = "begin a job") -> None:
        """Refuse a peer that names another user; root may, and a host may for its own users."""
        if self.uid and uid_of(user) != self.uid:
            raise RefusedError(f"{self} cannot {what} of user {user!r}")

    def check_rule(self, what: str) -> None:
        """Refuse a peer that is neither the deployment's user nor root on this host."""
        if self.uid is None:
            raise RefusedError(f"{self} cannot {what}; do so on the controller's host")
        if self.uid not in (0, os.geteuid()):
            raise RefusedError(f"{self} cannot {what}; the deployment's user can")

    def check_node(self) -> None:
        """Refuse an I/O node of another user of this host."""
        if self.is_local:
            self.check_rule("be an I/O node")

    def __str__(self) -> str:
        return f"host {self.address}" if self.uid is None else f"user {name_of(self.uid)}"


class RefusalLog:
    """Logs refusals, a limited number per minute: a hostile peer must not fill the disk."""

    def __init__(self) -> None:
        self.total = 0
        self._since = -WITHIN
        self._logged = 0

    def note(self, why: str) -> None:
        """Count and log a refusal."""
        self.total += 1
        now = time.monotonic()
        if now - self._since >= WITHIN:
            if self._logged > LINES:
                log.warning("refused %d more requests before", self._logged - LINES)
            self._since, self._logged = now, 0
        self._logged += 1
        if self._logged <= LINES:
            log.warning("refused: %s", why)
