"""Limits the connections of a controller, in total, per host, and per user (jobs).

File descriptors are shared: a client that opens thousands of connections must not block others.
"""

import os
import resource
from collections import Counter

from penstock.live.controller.peer import Peer
from penstock.live.protocol.errors import FullError
from penstock.live.protocol.users import name_of

CONNECTION_PART = 0.75
"""Part of all descriptors for connections; I/O nodes, store and records need the rest."""


class Quotas:
    """Counts connections; `user_jobs` is the limit of one user's jobs, 0: half of all connections.

    The deployment's own user may have all of them.
    """

    def __init__(self, user_jobs: int = 0, descriptors: int | None = None) -> None:
        if descriptors is None:
            descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.most = int(descriptors * CONNECTION_PART)
        self._per_host = self.most // 2
        self._user_jobs = user_jobs
        self._own = name_of(os.geteuid())
        self._hosts: Counter[str] = Counter()
        self._users: Counter[str] = Counter()

    def enter(self, peer: Peer) -> None:
        """Count a connection; FullError: there are too many."""
        if self._hosts.total() >= self.most:
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
