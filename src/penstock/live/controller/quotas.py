"""How many connections a controller takes, and how many of them are one host's or one user's jobs.

Descriptors are for all: who opens thousands of connections finds them refused, and others do not.
"""

import os
import resource
from collections import Counter

from penstock.live.controller.peer import Peer
from penstock.live.protocol.errors import FullError
from penstock.live.protocol.users import name_of

TAKEN = 0.75
"""The part of all descriptors that connections may take: I/O nodes, store and records need some."""


class Quotas:
    """Counts who is there; `user_jobs` are the jobs that one user may have, 0: half of all places.

    On a deployment of one user's own, that user may have them all.
    """

    def __init__(self, user_jobs: int = 0, descriptors: int | None = None) -> None:
        if descriptors is None:
            descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.most = int(descriptors * TAKEN)
        self._of_one = self.most // 2
        self._user_jobs = user_jobs
        self._own = name_of(os.geteuid())
        self._hosts: Counter[str] = Counter()
        self._users: Counter[str] = Counter()

    def enter(self, peer: Peer) -> None:
        """Take a connection in; FullError: it must go."""
        if self._hosts.total() >= self.most:
            raise FullError(f"{peer}: the controller has {self.most} connections, and no room")
        if not peer.is_local and self._hosts[peer.address] >= self._of_one:
            raise FullError(f"{peer} has {self._of_one} connections, as many as one host may have")
        self._hosts[peer.address] += 1

    def leave(self, peer: Peer, user: str | None) -> None:
        """Let a connection go, and the job of this user that it had."""
        _less(self._hosts, peer.address)
        if user is not None:
            _less(self._users, user)

    def begin(self, user: str) -> None:
        """Take a job in; FullError: its user has too many."""
        most = self._user_jobs or (self.most if user == self._own else self._of_one)
        if self._users[user] >= most:
            raise FullError(
                f"user {user} has {most} jobs here, as many as one user may have (live.user-jobs)"
            )
        self._users[user] += 1


def _less(counted: Counter[str], who: str) -> None:
    counted[who] -= 1
    if not counted[who]:
        del counted[who]
