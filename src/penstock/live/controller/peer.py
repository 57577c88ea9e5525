"""The other end of a connection to the controller: what it may request, and how many there may be.

File descriptors are shared: a client that opens thousands of connections must not block others.
"""

import logging
import os
import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import InputError
from penstock.live.protocol.client import FullError
from penstock.live.protocol.users import SubordinateIds, name_of, peer_credentials, uid_of
from penstock.printable import printable

LINES, WITHIN = 20, 60.0
"""Refusals that are logged, within this many seconds."""
CONNECTION_PART = 0.75
"""Part of all descriptors for connections; I/O nodes, store and records need the rest."""
log = logging.getLogger("penstock.controller")


class RefusedError(InputError):
    """A request that the peer is not allowed to make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Who is at the other end.

    A user of this host (according to the kernel), a user of another host who has proven its key,
    or another host, which has proven the site key and speaks for all its users.
    """

    uid: int | None = None  # None: on another host
    pid: int = 0  # on this host
    address: str = ""
    user: str = ""  # of another host

    @classmethod
    def from_socket(cls, connection: Any) -> "Peer":
        """Return the other end of a Unix socket."""
        pid, uid = peer_credentials(connection)
        return cls(uid=uid, pid=pid)

    @property
    def is_local(self) -> bool:
        """Whether it is on this host."""
        return self.uid is not None

    def check_user(self, user: str, what: str = "begin a job") -> None:
        """Refuse a peer that names another user; root may, and a host may for its own users."""
        if (self.uid and uid_of(user) != self.uid) or (self.user and user != self.user):
            raise RefusedError(f"{self} cannot {what} of user {user!r}")

    def may_read(self, user: str) -> bool:
        """Tell whether it may know paths of a user: its own, or any if it is the deployment's."""
        if self.uid is None:
            return bool(self.user) and user == self.user
        return self.rules or self.uid == uid_of(user)

    @property
    def rules(self) -> bool:
        """Whether it is the deployment's user, or root on this host."""
        return self.uid is not None and self.uid in (0, os.geteuid())

    @property
    def charged(self) -> str:
        """Whose part of the controller's time it takes: a user's, or that of a whole host."""
        if self.uid is not None:
            return f"user {name_of(self.uid)}"
        return f"user {self.user}" if self.user else f"host {self.address}"

    @property
    def is_trusted(self) -> bool:
        """Whether it has the deployment's rights anyway, or speaks for a whole host."""
        return self.rules or (self.uid is None and not self.user)

    def sees(self, user: str) -> bool:
        """Tell whether the status shows it the jobs of a user."""
        return self.is_trusted or self.may_read(user)

    def check_own(self, user: str, what: str) -> None:
        """Refuse a peer that is neither this user nor the deployment's user or root."""
        if not self.may_read(user):
            raise RefusedError(f"{self} cannot {what} of user {user!r}")

    def check_rule(self, what: str) -> None:
        """Refuse a peer that is neither the deployment's user nor root on this host."""
        if self.uid is None:
            raise RefusedError(f"{self} cannot {what}; do so on the controller's host")
        if not self.rules:
            raise RefusedError(f"{self} cannot {what}; the deployment's user can")

    def check_node(self) -> None:
        """Refuse an I/O node of a user: that of another host has to prove the site key."""
        if self.is_local or self.user:
            self.check_rule("be an I/O node")

    def __str__(self) -> str:
        if self.uid is not None:
            return f"user {name_of(self.uid)}"
        host = f"host {self.address}"
        return f"user {printable(self.user)} of {host}" if self.user else host


KEPT_PART = 16
"""Of connections, every 16th is kept for root and the deployment's user."""


class RefusalLog:
    """Logs refusals, a limited number per minute: a hostile peer must not fill the disk."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = 0
        self._clock = clock
        self._since = -WITHIN
        self._logged = 0

    def note(self, why: str) -> None:
        """Count and log a refusal."""
        self.total += 1
        now = self._clock()
        if now - self._since >= WITHIN:
            if self._logged > LINES:
                log.warning("refused %d more requests before", self._logged - LINES)
            self._since, self._logged = now, 0
        self._logged += 1
        if self._logged <= LINES:
            log.warning("refused: %s", why)


class Quotas:
    """Counts connections; `user_jobs` is the limit of one user's jobs, 0: half of all connections.

    The deployment's own user may have all of them.
    """

    def __init__(
        self,
        user_jobs: int = 0,
        descriptors: int | None = None,
        subordinate_ids: SubordinateIds | None = None,
    ) -> None:
        if descriptors is None:
            descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.most = int(descriptors * CONNECTION_PART)
        self._per_host = self.most // 2
        self._user_jobs = user_jobs
        self._subordinate_ids = subordinate_ids or SubordinateIds()
        self._own = name_of(os.geteuid())
        self._hosts: Counter[str] = Counter()
        self._users: Counter[str] = Counter()

    def owner(self, peer: Peer) -> int | None:
        """Return the user of this host that a peer is, or is a subordinate id of."""
        owner = None if peer.uid is None else self._subordinate_ids.owner(peer.uid)
        return peer.uid if owner is None else owner

    def enter(self, peer: Peer) -> None:
        """Count a connection; FullError: there are too many. RefusedError: who has many ids."""
        owner = None if peer.uid is None else self._subordinate_ids.owner(peer.uid)
        if owner is not None:
            raise RefusedError(f"{peer} is a subordinate id of {name_of(owner)}, who can connect")
        kept = 0 if peer.rules else self.most // KEPT_PART
        if self._hosts.total() >= self.most - kept:
            raise FullError(
                f"{peer}: the controller has {self.most} connections, the most it can have"
            )
        if not peer.is_local and self._hosts[peer.address] >= self._per_host:
            raise FullError(f"{peer} has {self._per_host} connections, the most one host may have")
        self._hosts[peer.address] += 1

    def leave(self, peer: Peer, user: str | None) -> None:
        """Stop counting a connection, and the job of this user that it had."""
        _decrement(self._hosts, peer.address)
        if user is not None:
            _decrement(self._users, user)

    def begin(self, user: str) -> None:
        """Count a job; FullError: its user has too many."""
        most = self._user_jobs or (self.most if user == self._own else self._per_host)
        if self._users[user] >= most:
            raise FullError(
                f"user {user} has {most} jobs here, as many as one user may have (live.user-jobs)"
            )
        self._users[user] += 1


def _decrement(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
